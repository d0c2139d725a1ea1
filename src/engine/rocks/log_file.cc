/* A log that is prepared ahead.
 *
 * A commit waits for fdatasync, and a file that has grown needs two things on the disk then: its
 * bytes, and the journal's word for the new length and the new blocks. Blocks that were set aside
 * (fallocate) do not help, for the journal must also say that they have been written. So zeros are
 * written ahead of the log's end, some at a time; within them a sync is the bytes alone, which takes
 * two thirds of the time. Behind a group that is large anyway the journal's share is small, and zeros
 * would be a second write of everything: such a log just grows.
 *
 * Zeros behind the last record are what RocksDB's reader takes for an end, and wal.c and mark.c too.
 * When RocksDB closes the file it cuts them off; after a crash they stay. What cannot be prepared is
 * no failure: the write itself will say what is wrong.
 *
 * In C++, for a file system is a class with virtual functions there (rocksdb/file_system.h). */
#include "engine/rocks/log_file.h"

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/utilities/object_registry.h>

#include <algorithm>
#include <cstdint>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

namespace
{

constexpr uint64_t AHEAD = 256 * 1024;      /* bytes that are prepared at a time */
constexpr uint64_t GROUP_LARGE = 64 * 1024; /* written since the last sync: no more are prepared */

const char zeros[AHEAD] = {};

class LogFile final : public rocksdb::FSWritableFileOwnerWrapper
{
  public:
    LogFile(std::unique_ptr<rocksdb::FSWritableFile> &&file, int ahead)
        : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), ahead_(ahead)
    {
    }
    LogFile(const LogFile &) = delete;
    LogFile &operator=(const LogFile &) = delete;
    ~LogFile() override
    {
        close(ahead_);
    }

    using rocksdb::FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice &data, const rocksdb::IOOptions &options,
                             rocksdb::IODebugContext *debug) override
    {
        prepare(data.size());
        return rocksdb::FSWritableFileOwnerWrapper::Append(data, options, debug);
    }
    rocksdb::IOStatus Append(const rocksdb::Slice &data, const rocksdb::IOOptions &options,
                             const rocksdb::DataVerificationInfo &verification,
                             rocksdb::IODebugContext *debug) override
    {
        prepare(data.size());
        return rocksdb::FSWritableFileOwnerWrapper::Append(data, options, verification, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions &options,
                           rocksdb::IODebugContext *debug) override
    {
        unsynced_ = 0;
        return rocksdb::FSWritableFileOwnerWrapper::Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions &options,
                            rocksdb::IODebugContext *debug) override
    {
        unsynced_ = 0;
        return rocksdb::FSWritableFileOwnerWrapper::Fsync(options, debug);
    }

  private:
    /* So many bytes are about to be written at the end. */
    void prepare(uint64_t bytes)
    {
        end_ += bytes;
        unsynced_ += bytes;
        if (end_ <= prepared_ || unsynced_ > GROUP_LARGE)
            return;
        ssize_t written = pwrite(ahead_, zeros, AHEAD, static_cast<off_t>(end_));
        prepared_ = end_ + static_cast<uint64_t>(std::max<ssize_t>(written, 0));
    }

    int ahead_; /* another descriptor of the file, for RocksDB's has a place where it writes next */
    uint64_t end_ = 0, prepared_ = 0, unsynced_ = 0;
};

class LogFileSystem final : public rocksdb::FileSystemWrapper
{
  public:
    explicit LogFileSystem(const std::shared_ptr<rocksdb::FileSystem> &target)
        : rocksdb::FileSystemWrapper(target)
    {
    }
    const char *Name() const override
    {
        return ROCKS_LOG_FILES;
    }
    rocksdb::IOStatus NewWritableFile(const std::string &name, const rocksdb::FileOptions &options,
                                      std::unique_ptr<rocksdb::FSWritableFile> *result,
                                      rocksdb::IODebugContext *debug) override
    {
        static const std::string ending = ".log";
        rocksdb::IOStatus status =
            rocksdb::FileSystemWrapper::NewWritableFile(name, options, result, debug);
        bool is_log = name.size() > ending.size() &&
                      name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
        int ahead = status.ok() && is_log ? open(name.c_str(), O_WRONLY | O_CLOEXEC) : -1;

        if (ahead >= 0)
            result->reset(new LogFile(std::move(*result), ahead));
        return status;
    }
};

} // namespace

void rocks_log_files_register(void)
{
    static std::once_flag once;

    std::call_once(once, [] {
        /* For as long as the process runs: stores may be closed by its last thread. */
        static rocksdb::Env *env = rocksdb::NewCompositeEnv(std::make_shared<LogFileSystem>(
                                                                rocksdb::FileSystem::Default()))
                                       .release();

        rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::Env>(
            ROCKS_LOG_FILES,
            [](const std::string &, std::unique_ptr<rocksdb::Env> *, std::string *) { return env; });
    });
}
