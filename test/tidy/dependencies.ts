import { builtinModules } from 'node:module'
import { areaOf, type Source } from './rules.ts'

/** The part of package.json that the rule reads. */
export interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** Packages that no TypeScript source imports, each with a file that uses it and the text there that proves the use. */
const USED_BY_NAME: Readonly<Record<string, readonly [path: string, text: string]>> = {
  '@biomejs/biome': ['scripts/check.mjs', '.bin/biome'],
  // The clients that oazapfts generates import it.
  '@oazapfts/runtime': ['test/conformance/control/openapi.test.ts', '.bin/oazapfts'],
  '@types/node': ['tsconfig.json', '"types": ["node"]'],
  'axe-core': ['test/support/console.ts', "resolve('axe-core/"],
  'd3-geo': ['scripts/world-shapes.mjs', "from 'd3-geo'"],
  'drachtio-srf': ['signaling/drachtio/library.ts', "require('drachtio-srf')"],
  'node-addon-api': ['native/binding.gyp', 'node-addon-api'],
  oazapfts: ['test/conformance/control/openapi.test.ts', '.bin/oazapfts'],
  rolldown: ['scripts/bundle.mjs', "from 'rolldown'"],
  'swagger-ui-dist': ['control/openapi/viewer.ts', 'swagger-ui-dist/'],
  'topojson-client': ['scripts/world-shapes.mjs', "from 'topojson-client'"],
  typescript: ['scripts/check.mjs', '.bin/tsc'],
}

/** Sources that run, or that `npm start` builds, in a tree without development dependencies. */
const SHIPPED = /^(core|signaling|media|control|markup|native|bin)\//
/** Files that build for `npm start`, of those that USED_BY_NAME names. */
const BUILDS_START = /^(scripts\/(console|bundle|world-shapes)\.mjs|native\/)/

/** Finds packages that are installed but unused, imported but not installed, or installed for the wrong purpose. */
export function dependencyFindings(
  { dependencies, devDependencies }: Manifest,
  sources: readonly Source[],
  read: (path: string) => string,
): string[] {
  const imported = packagesOf(sources)
  const shipped = packagesOf(sources.filter(({ path }) => SHIPPED.test(path)))
  const used = (name: string): boolean => {
    const [path, text] = USED_BY_NAME[name] ?? []
    if (path !== undefined && text !== undefined) return read(path).includes(text)
    return imported.has(name.replace('@types/', ''))
  }
  const all = [...Object.keys(dependencies), ...Object.keys(devDependencies)]
  return [
    ...all.filter(name => !used(name)).map(name => `package.json: nobody imports ${name}`),
    ...[...imported]
      .filter(name => !all.includes(name))
      .map(name => `package.json: ${name} is imported and not listed`),
    ...[...shipped]
      .filter(name => name in devDependencies)
      .map(name => `package.json: the product imports ${name}, a development dependency`),
    ...Object.keys(devDependencies)
      .filter(name => BUILDS_START.test(USED_BY_NAME[name]?.[0] ?? ''))
      .map(name => `package.json: \`npm start\` builds with ${name}, a development dependency`),
    ...Object.keys(dependencies)
      .filter(name => imported.has(name) && !shipped.has(name) && USED_BY_NAME[name] === undefined)
      .map(name => `package.json: only tests and tools import ${name}: make it a development dependency`),
  ]
}

/** Returns the names of the packages that these sources import. */
const packagesOf = (sources: readonly Source[]): Set<string> =>
  new Set(
    sources
      .flatMap(({ imports }) => imports)
      .map(packageOf)
      .filter(name => name !== null),
  )

/** Returns the package of an import; null for our own files and for Node.js modules. */
function packageOf(specifier: string): string | null {
  if (specifier.startsWith('node:') || specifier.startsWith('.') || areaOf(specifier) !== undefined) return null
  const [first = '', second = ''] = specifier.split('/')
  if (builtinModules.includes(first)) return null
  return first.startsWith('@') ? `${first}/${second}` : first
}
