// One script, one style sheet, names without hashes: they are embedded in the server's binary.
import {defineConfig} from 'vite';

export default defineConfig({
  esbuild: {jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none'},
  build: {
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: {output: {entryFileNames: 'assets/app.js', assetFileNames: 'assets/app[extname]'}},
  },
});
