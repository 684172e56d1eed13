// Builds the web console from control/console into build/console and adds a compressed copy of each text file. The
// control plane serves the files unchanged.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { build } from 'vite'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const source = join(root, 'control/console')
const target = join(root, 'build/console')
mkdirSync(target, { recursive: true })

await build({ root: source, configFile: join(source, 'vite.config.mjs'), logLevel: 'warn' })

for (const name of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(js|css|svg|html)$/.test(name)) continue
  const path = join(target, name)
  writeFileSync(
    `${path}.br`,
    brotliCompressSync(readFileSync(path), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  )
}
