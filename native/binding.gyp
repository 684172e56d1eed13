{
  "targets": [
    {
      "target_name": "media",
      # The tests link the unit of core and codecs without that of Node.js.
      "sources": ["<(INTERMEDIATE_DIR)/core.cc", "<(INTERMEDIATE_DIR)/napi.cc"],
      "actions": [
        {
          "action_name": "core",
          "inputs": ["<!@(cd <(module_root_dir) && ls src/core/*.cc src/codec/*.cc)"],
          "outputs": ["<(INTERMEDIATE_DIR)/core.cc"],
          "action": ["sh", "src/unit.sh", "<@(_outputs)", "<@(_inputs)"]
        },
        {
          "action_name": "napi",
          "inputs": ["<!@(cd <(module_root_dir) && ls src/napi/*.cc)"],
          "outputs": ["<(INTERMEDIATE_DIR)/napi.cc"],
          "action": ["sh", "src/unit.sh", "<@(_outputs)", "<@(_inputs)"]
        }
      ],
      "include_dirs": [
        ".",
        "<!(node -p \"require('node-addon-api').include_dir\")",
        "<!@(pkg-config --cflags-only-I opus spandsp soxr libcrypto | sed s/-I//g)"
      ],
      "libraries": ["<!@(pkg-config --libs opus spandsp soxr libcrypto)", "-ldl"],
      "defines": ["NAPI_VERSION=8", "NODE_ADDON_API_CPP_EXCEPTIONS", "OPENSSL_SUPPRESS_DEPRECATED"],
      "cflags!": ["-fno-exceptions"],
      "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17"],
      "cflags_cc": ["-std=gnu++20", "-fexceptions", "-Wall", "-Wextra", "-fvisibility=hidden"],
      "cflags": ["-O3"]
    },
    {
      "target_name": "confine",
      "type": "executable",
      "sources": ["src/confine/confine.cc"],
      "cflags_cc!": ["-std=gnu++17"],
      "cflags_cc": ["-std=gnu++20", "-Wall", "-Wextra"]
    }
  ]
}
