import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  build: {
    outDir: '../../build/console',
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy forbids inline assets.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    manifest: true,
    reportCompressedSize: false,
    // A busy machine is no reason to warn.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
})
