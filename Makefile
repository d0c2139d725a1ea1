# The everyday commands. The build itself is Meson's; this only names what we do with it.
.PHONY: help run test check check-all format bench bench-long rocksdb docs package package-check clean

help:
	@echo 'make check      the fast tests under ASan and UBSan, about a minute'
	@echo 'make test       every test there is (./test)'
	@echo 'make check-all  besides: long random runs, TSan, end to end under ASan, fuzz targets for a minute each, packages'
	@echo 'make run        build and start the server (./run)'
	@echo 'make format     clang-format on every source file'
	@echo 'make bench      the comparisons of bench/, figures printed'
	@echo 'make bench-long the long ones: 2 million items put in, a re-key of one million, 100,000 vectors'
	@echo 'make rocksdb    build RocksDB as releases have it, once for all builds, a few minutes'
	@echo 'make docs       make the pages of docs/ that are printed by the server'
	@echo 'make package    Debian packages, in build-package/'
	@echo 'make package-check  the same, and lintian, installed, upgraded and purged in a clean chroot, built twice and compared'
	@echo 'make clean      remove every build directory'

run:
	@./run

test:
	@./test

check:
	@scripts/setup build test
	@scripts/check fast

check-all:
	@scripts/setup build test package
	@scripts/check all

format:
	@scripts/setup test
	@scripts/format

bench:
	@scripts/setup build bench
	@scripts/bench

bench-long:
	@scripts/setup build bench
	@FILL_BENCH_ITEMS=2000000 FILL_BENCH_ROUNDS=3 scripts/bench fill_bench
	@for round in 1 2 3; do REKEY_BENCH_MB=1024 scripts/bench rekey_bench || exit 1; done
	@VECTOR_BENCH_VECTORS=100000 scripts/bench vector_bench

rocksdb:
	@scripts/setup build
	@scripts/rocksdb build

docs:
	@scripts/build release orrery
	build/orrery help settings --markdown > docs/settings.md
	build/orrery help errors --markdown > docs/errors.md
	build/orrery help api --markdown > docs/compatibility.md
	build/orrery help tables --markdown > docs/compatibility-tables.md
	build/orrery help mongo --markdown > docs/compatibility-mongo.md
	build/orrery help gremlin --markdown > docs/compatibility-gremlin.md

package:
	@scripts/setup build package
	@scripts/package build

package-check: package
	@scripts/package check
	@scripts/package reproducible

clean:
	rm -rf build build-*
