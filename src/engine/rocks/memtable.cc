/* tree.c as a write buffer of RocksDB.
 *
 * In C++, because a memtable is a class with virtual functions and RocksDB's C interface knows only
 * its own kinds. All of it stands on RocksDB's public header (rocksdb/memtablerep.h), but two
 * things in there take care:
 *
 * An iterator is to be made in an arena of RocksDB's if there is one, and is then destructed and
 * never deleted; but arenas are not public. So such an iterator is ours, and the destructor, which
 * may not free what it runs in, leaves it with its thread: the next one made there is made in it.
 *
 * The function that looks up a key is to be overridden, since the one to inherit never deletes the
 * iterator it makes; but the key it gets is of a class that is not public. So the inherited
 * one is called, and is lent an iterator. */
#include "engine/rocks/memtable.h"

#include "engine/rocks/tree.h"

#include <rocksdb/memtablerep.h>
#include <rocksdb/utilities/object_registry.h>

#include <mutex>
#include <new>

namespace
{

class TreeIterator final : public rocksdb::MemTableRep::Iterator
{
  public:
    TreeIterator(const struct rocks_tree *tree, bool in_arena) : tree_(tree), in_arena_(in_arena)
    {
    }
    ~TreeIterator() override;

    bool Valid() const override
    {
        return at_ != nullptr;
    }
    const char *key() const override
    {
        return reinterpret_cast<const char *>(at_->bytes);
    }
    void Next() override
    {
        at_ = rocks_tree_next(tree_, at_);
    }
    void Prev() override
    {
        at_ = rocks_tree_prev(tree_, at_);
    }
    void Seek(const rocksdb::Slice &key, const char *) override
    {
        at_ = rocks_tree_seek(tree_, reinterpret_cast<const uint8_t *>(key.data()), key.size());
    }
    void SeekForPrev(const rocksdb::Slice &key, const char *) override
    {
        at_ = rocks_tree_seek_back(tree_, reinterpret_cast<const uint8_t *>(key.data()),
                                   key.size());
    }
    void SeekToFirst() override
    {
        at_ = rocks_tree_next(tree_, nullptr);
    }
    void SeekToLast() override
    {
        at_ = rocks_tree_prev(tree_, nullptr);
    }
    void reuse(const struct rocks_tree *tree)
    {
        tree_ = tree;
        at_ = nullptr;
    }

  private:
    const struct rocks_tree *tree_;
    const struct rocks_entry *at_ = nullptr;
    bool in_arena_;
};

/* Memory of one iterator that was destructed on this thread. */
struct Left {
    void *memory = nullptr;
    ~Left()
    {
        ::operator delete(memory);
    }
};

thread_local Left left;

TreeIterator::~TreeIterator()
{
    if (!in_arena_)
        return; /* its memory is deleted by whoever deletes it */
    ::operator delete(left.memory);
    left.memory = this;
}

/* The iterator that is lent to look-ups of this thread; and to whom just now. */
thread_local TreeIterator lent(nullptr, false);
thread_local const rocksdb::MemTableRep *lent_to = nullptr;

class TreeMemTable final : public rocksdb::MemTableRep
{
  public:
    explicit TreeMemTable(rocksdb::Allocator *allocator) : rocksdb::MemTableRep(allocator)
    {
        rocks_tree_init(&tree_, give, this);
    }

    rocksdb::KeyHandle Allocate(const size_t len, char **buf) override
    {
        struct rocks_entry *entry = rocks_tree_entry_new(&tree_, len);

        *buf = reinterpret_cast<char *>(entry->bytes);
        return entry;
    }
    void Insert(rocksdb::KeyHandle handle) override
    {
        (void)InsertKey(handle);
    }
    bool InsertKey(rocksdb::KeyHandle handle) override
    {
        return rocks_tree_insert(&tree_, static_cast<struct rocks_entry *>(handle));
    }
    bool Contains(const char *key) const override
    {
        return rocks_tree_contains(&tree_, reinterpret_cast<const uint8_t *>(key));
    }
    void Get(const rocksdb::LookupKey &key, void *context,
             bool (*callback)(void *context, const char *entry)) override
    {
        lent_to = this;
        rocksdb::MemTableRep::Get(key, context, callback);
        lent_to = nullptr;
    }
    /* All memory is of RocksDB's allocator, which counts it. */
    size_t ApproximateMemoryUsage() override
    {
        return 0;
    }
    Iterator *GetIterator(rocksdb::Arena *arena) override
    {
        void *memory = arena ? left.memory : nullptr;

        if (memory)
            left.memory = nullptr;
        else
            memory = ::operator new(sizeof(TreeIterator));
        return new (memory) TreeIterator(&tree_, arena != nullptr);
    }
    Iterator *GetDynamicPrefixIterator(rocksdb::Arena *arena) override
    {
        if (lent_to != this || arena)
            return GetIterator(arena);
        lent_to = nullptr;
        lent.reuse(&tree_);
        return &lent;
    }

  private:
    /* RocksDB gives multiples of a pointer's size aligned to one as long as nobody has asked the
     * same arena for something else. That is looked at and not relied on. */
    static void *give(void *context, size_t bytes)
    {
        constexpr uintptr_t rest = alignof(void *) - 1;
        TreeMemTable *own = static_cast<TreeMemTable *>(context);
        char *memory;

        bytes = (bytes + rest) & ~rest;
        if (own->aligned_) {
            own->MemTableRep::Allocate(bytes, &memory);
            own->aligned_ = (reinterpret_cast<uintptr_t>(memory) & rest) == 0;
        }
        if (!own->aligned_) {
            own->MemTableRep::Allocate(bytes + rest, &memory);
            memory += -reinterpret_cast<uintptr_t>(memory) & rest;
        }
        return memory;
    }

    bool aligned_ = true; /* so far */
    struct rocks_tree tree_;
};

class TreeFactory final : public rocksdb::MemTableRepFactory
{
  public:
    using rocksdb::MemTableRepFactory::CreateMemTableRep;
    rocksdb::MemTableRep *CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator &,
                                            rocksdb::Allocator *allocator,
                                            const rocksdb::SliceTransform *,
                                            rocksdb::Logger *) override
    {
        return new TreeMemTable(allocator);
    }
    const char *Name() const override
    {
        return ROCKS_MEMTABLE;
    }
    bool CanHandleDuplicatedKey() const override
    {
        return true;
    }
};

} // namespace

void rocks_memtable_register(void)
{
    static std::once_flag once;

    std::call_once(once, [] {
        rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::MemTableRepFactory>(
            ROCKS_MEMTABLE,
            [](const std::string &, std::unique_ptr<rocksdb::MemTableRepFactory> *guard,
               std::string *) {
                guard->reset(new TreeFactory());
                return guard->get();
            });
    });
}
