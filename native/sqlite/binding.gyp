# Compiles the npm package better-sqlite3 and the SQLite in it. The package's own build would try to download a binary
# first, would compile extensions that Strowger does not use, and would leave 17 MB of objects (decision 0710).
{
  "variables": {
    "package": "../../node_modules/better-sqlite3"
  },
  "targets": [
    {
      "target_name": "sqlite3",
      "type": "static_library",
      "sources": ["<(package)/deps/sqlite3/sqlite3.c"],
      "includes": ["../../node_modules/better-sqlite3/deps/defines.gypi"],
      "defines": ["NDEBUG"],
      "defines!": [
        "SQLITE_ENABLE_FTS3",
        "SQLITE_ENABLE_FTS3_PARENTHESIS",
        "SQLITE_ENABLE_FTS4",
        "SQLITE_ENABLE_FTS5",
        "SQLITE_ENABLE_GEOPOLY",
        "SQLITE_ENABLE_RTREE"
      ],
      "cflags": ["-std=c99", "-w"],
      "configurations": { "Release": { "cflags!": ["-O3"], "cflags": ["-O2"] } }
    },
    {
      "target_name": "better_sqlite3",
      "dependencies": ["sqlite3"],
      "sources": ["<(package)/src/better_sqlite3.cpp"],
      "include_dirs": [".", "<(package)/deps/sqlite3"],
      "defines": ["NDEBUG"],
      "cflags_cc": ["-std=c++20", "-w", "-include", "object-wrap.h"],
      "configurations": { "Release": { "cflags!": ["-O3"], "cflags": ["-O2"] } },
      "ldflags": ["-Wl,-Bsymbolic", "-Wl,--exclude-libs,ALL"]
    }
  ]
}
