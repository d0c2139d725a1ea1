/* The way to the driver that has members, and looking things up in what a beat found. */
#include "engine/driver.h"

const struct engine_member *engine_membership_find(const struct engine_membership *membership,
                                                   uint64_t incarnation)
{
    for (size_t i = 0; incarnation && i < membership->count; i++)
        if (membership->list[i].incarnation == incarnation)
            return &membership->list[i];
    return NULL;
}

const struct engine_member *engine_membership_named(const struct engine_membership *membership,
                                                    struct slice name)
{
    for (size_t i = 0; i < membership->count; i++)
        if (slice_equal(slice_of_text(membership->list[i].name), name))
            return &membership->list[i];
    return NULL;
}

void engine_members_close(struct engine_members *members)
{
    if (members)
        members->driver->close(members);
}

uint64_t engine_members_incarnation(const struct engine_members *members)
{
    return members->incarnation;
}

bool engine_members_beat(struct engine_members *members, struct engine_membership *ret_membership,
                         struct error *err)
{
    return members->driver->beat(members, ret_membership, err);
}

bool engine_members_claim(struct engine_members *members, const struct engine_membership *seen,
                          struct engine_claim *ret_claim, struct error *err)
{
    return members->driver->claim(members, seen, ret_claim, err);
}

bool engine_members_wait(struct engine_members *members, int wake_fd, int64_t ms_max)
{
    return members->driver->wait(members, wake_fd, ms_max);
}

bool engine_members_release(struct engine_members *members, struct error *err)
{
    return members->driver->release(members, err);
}

bool engine_members_drain(struct engine_members *members, struct slice name, bool on,
                          struct error *err)
{
    return members->driver->drain(members, name, on, err);
}

bool engine_members_forget(struct engine_members *members, struct slice name, struct error *err)
{
    return members->driver->forget(members, name, err);
}

bool engine_members_get(struct engine_members *members, uint32_t partition, struct slice key,
                        struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    return members->driver->get(members, partition, key, arena, ret_value, err);
}
