/* A ring: the oldest is forgotten when there is no room. */
#include "catalogue/container_names.h"
#include "migration/migrator_private.h"

void migrator_outcome_note(struct migrator *migrator, const struct migrator_run *run,
                           const struct container *container, bool cancelled)
{
    struct migrator_ended ended = {.arena = arena_new()};
    struct arena *before = NULL;

    ended.outcome = (struct migrator_outcome){
        .account = container_account_number(container),
        .database = container_names(migrator->catalogue, container, ended.arena).database,
        .container = arena_copy(ended.arena, container_info(container)->id),
        .cancelled = cancelled,
        .ended_ms = clock_read_wall_ms(migrator->clock),
        .progress = run->progress,
    };
    ended.outcome.progress.elapsed_ms = clock_read_monotonic_ms(migrator->clock) - run->begun_ms;
    WITH_LOCK (&migrator->lock) {
        struct migrator_ended *place =
            &migrator->ended[migrator->ended_count++ % MIGRATOR_OUTCOMES];

        before = place->arena;
        *place = ended;
    }
    arena_free(before);
}

struct migrator_outcome *migrator_outcomes(struct migrator *migrator, struct arena *arena,
                                           size_t *ret_count)
{
    struct migrator_outcome *outcomes =
        ARENA_ARRAY(arena, struct migrator_outcome, MIGRATOR_OUTCOMES);

    WITH_LOCK (&migrator->lock) {
        *ret_count = MIN(migrator->ended_count, (size_t)MIGRATOR_OUTCOMES);
        for (size_t i = 0; i < *ret_count; i++) {
            outcomes[i] =
                migrator->ended[(migrator->ended_count - 1 - i) % MIGRATOR_OUTCOMES].outcome;
            outcomes[i].database = arena_copy(arena, outcomes[i].database);
            outcomes[i].container = arena_copy(arena, outcomes[i].container);
        }
    }
    return outcomes;
}

void migrator_outcomes_free(struct migrator *migrator)
{
    for (size_t i = 0; i < MIGRATOR_OUTCOMES; i++)
        arena_free(migrator->ended[i].arena);
}
