// `npm run packages`: compiles the packages for customers' programs and packs each as build/packages/*.tgz, or into the
// folder of the first argument. Nothing is downloaded: they have no dependencies.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const TARGET = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '../build/packages'))
process.chdir(join(dirname(fileURLToPath(import.meta.url)), '..'))
rmSync(TARGET, { recursive: true, force: true })
for (const name of readdirSync('packages')) {
  const folder = join(TARGET, name)
  mkdirSync(folder, { recursive: true })
  const compiled = ['-p', join('packages', name), '--outDir', join(folder, 'dist')]
  execFileSync('node_modules/.bin/tsc', compiled, { stdio: 'inherit' })
  for (const file of ['package.json', 'README.md']) cpSync(join('packages', name, file), join(folder, file))
  cpSync('LICENSE', join(folder, 'LICENSE'))
  const packed = ['pack', folder, '--pack-destination', TARGET, '--ignore-scripts', '--offline', '--loglevel=error']
  console.log(execFileSync('npm', packed, { encoding: 'utf8' }).trim())
}
