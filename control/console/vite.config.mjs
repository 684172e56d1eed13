import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  build: {
    outDir: '../../build/console',
    emptyOutDir: true,
    target: 'es2022',
    // Nothing inline: the content security policy has no room for it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    manifest: true,
    reportCompressedSize: false,
  },
})
