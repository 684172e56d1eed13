/** A source file with its imports: own files as paths from the root, packages by name. */
export interface Source {
  readonly path: string
  readonly text: string
  readonly imports: readonly string[]
}

type Rule = (source: Source) => string[]

const AREAS = ['core', 'signaling', 'media', 'control', 'markup', 'native', 'bin', 'bench', 'test'] as const
export const areaOf = (path: string): string | undefined => AREAS.find(area => path.startsWith(`${area}/`))

/** Of our own files, those in `from` may import only those in `allowed`. The core must not import the processes. */
const mayImport =
  (from: RegExp, allowed: RegExp): Rule =>
  ({ path, imports }) =>
    from.test(path)
      ? imports
          .filter(item => areaOf(item) !== undefined && !allowed.test(item))
          .map(item => `${path}: may not import ${item}`)
      : []

const imports_no_node =
  (from: RegExp): Rule =>
  ({ path, imports }) =>
    from.test(path)
      ? imports.filter(item => item.startsWith('node:')).map(item => `${path}: may not import ${item}`)
      : []

/**
 * The only files that read the environment: the parser of settings, and programs that pass the environment to it.
 * `samples.ts` writes programs of readers, which do.
 */
const ENVIRONMENT = /^(core\/runtime\/(lifecycle|config)\.ts|control\/openapi\/samples\.ts|bin\/|bench\/|test\/)/

/** Each layer of a call may import itself and the layers before it. The files directly in `signaling/` wire them. */
const CALL_LAYERS = ['drachtio', 'trunks', 'b2bua', 'scripts', 'admission', 'tests']

const callLayers = CALL_LAYERS.map((layer, index) => {
  const known = CALL_LAYERS.slice(0, index + 1).join('|')
  return mayImport(
    new RegExp(`^signaling/${layer}/`),
    new RegExp(`^(signaling/(${known})|media/protocol|markup|core)/`),
  )
})

/** Files whose texts for users may name SQLite, the store of an installation without another one. */
const TELLS_OF_SQLITE = /^(core\/runtime\/(config|variables)|bin\/(commands|migrate|upgrade|where-state-is))\.ts$/
/** The file that connects the rooms of core/state with the stores. */
const KNOWS_THE_STORE = /^core\/state\/index\.ts$/
const WORDS_OF_SQLITE = /\b(sqlite\w*|pragma|rowid|better-sqlite3)\b/i
/** Files that may cast: a route definition loses the types of its parts when it joins the list of all routes. */
const CASTS_AS_IT_LIKES = /^control\/(http|voice)\/route\.ts$/

/** A camelCase field of an interface or class. Only functions and methods, which this does not match, are camelCase. */
const CAMEL_FIELD =
  /^ +(?:(?:readonly|static) )*#?(?:get [a-z]+[A-Z]\w*\(\)|[a-z]+[A-Z]\w*)[?!]?(?:: (?!.*(?:=>|[,(]$))| = new ).*$/m

/** Where the counters of ceilings are: the port that counts, and the reports that read it (decision 0641). */
const KNOWS_COUNTERS = /^core\/state\/(procedures\/ceilings\/|calls\/counters\.ts$|schema\/|migrations\/)/
const COUNTERS = /\b(level_use|spend_day|spend_minute)\b/

const codeOf = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
const isProduct = (path: string): boolean => !/^(test|bench)\//.test(path)

/** Properties within a spread, which only keeps the formatter from giving each its line. */
const PACKED = /^ +\.\.\.\{ .*\},$/m

export const ARROWS: readonly Rule[] = [
  ({ path, text }) =>
    isProduct(path) && PACKED.test(text) ? [`${path}: write without a spread: ${PACKED.exec(text)?.[0].trim()}`] : [],
  ({ path, text }) =>
    path.startsWith('signaling/edge/') && CAMEL_FIELD.test(text)
      ? [`${path}: fields are written in snake_case: ${CAMEL_FIELD.exec(text)?.[0].trim()}`]
      : [],
  ({ path }) =>
    /^core\/state\/(?!(index|port|db)\.ts$)[^/]+$/.test(path) ? [`${path}: move it into a room of core/state`] : [],
  ({ path, text }) =>
    isProduct(path) &&
    !path.startsWith('core/state/sqlite/') &&
    !TELLS_OF_SQLITE.test(path) &&
    !KNOWS_THE_STORE.test(path) &&
    WORDS_OF_SQLITE.test(codeOf(text))
      ? [`${path}: only core/state/sqlite knows that the store is SQLite`]
      : [],
  ({ path, text }) =>
    isProduct(path) && !KNOWS_COUNTERS.test(path) && COUNTERS.test(codeOf(text))
      ? [`${path}: only procedures/ceilings counts; calls/counters.ts reads the counters`]
      : [],
  ({ path, text }) =>
    isProduct(path) && text.includes('as unknown ' + 'as') && !CASTS_AS_IT_LIKES.test(path)
      ? [`${path}: "as unknown ${'as'}" hides a type; give the value its real type`]
      : [],
  mayImport(/^core\/domain\//, /^core\/domain\//),
  mayImport(/^core\/(state|runtime)\//, /^core\//),
  // A migration must keep its effect when the rules of the domain change, so it does not import them.
  mayImport(/^core\/state\/migrations\//, /^core\/state\/(migrations\/|port)/),
  mayImport(/^markup\//, /^(markup|core\/domain)\//),
  mayImport(/^native\//, /^native\//),
  mayImport(/^media\/protocol\//, /^(media\/protocol|core)\//),
  mayImport(/^media\//, /^(media|native|core)\//),
  // The edge parses bytes from strangers, so it opens no database (decision 0112).
  mayImport(/^signaling\/edge\//, /^(signaling\/edge|core\/(domain|runtime))\//),
  mayImport(/^signaling\/sandbox\//, /^(signaling\/edge|signaling\/sandbox|core)\//),
  mayImport(/^signaling\/(?!edge|sandbox)/, /^(signaling\/(?!edge|sandbox)|media\/protocol|markup|core)\/?/),
  ...callLayers,
  mayImport(/^control\//, /^(control|markup\/(parse|check)|core)/),
  mayImport(/^bin\//, /^(?!test\/)/),
  mayImport(/^(?!test\/)/, /^(?!test\/)/),
  imports_no_node(/^(core\/domain|markup)\//),
  ({ path, text }) =>
    /\bprocess\.env\b/.test(text) && !ENVIRONMENT.test(path)
      ? [`${path}: only core/runtime/config.ts reads the environment; take the value as a parameter`]
      : [],
]

/** The only files that may import a package. */
export const HOMES: readonly (readonly [string, RegExp])[] = [
  ['koa', /^(control|bench\/api)\//],
  ['@koa/router', /^control\//],
  ['kysely', /^(core\/state|test\/unit\/core\/state\/(migrations|postgres))\//],
  ['better-sqlite3', /^(core\/state|bench|test)\//],
  ['pg', /^(core\/state\/postgres\/|test\/support\/postgres\.ts$)/],
  ['drachtio-srf', /^(signaling\/(?!edge|sandbox)|test|bench)/],
  ['sdp-transform', /^test\/unit\/core\/domain\/codecs\/attributes\.test\.ts$/],
  ['wasm-media-encoders', /^control\/mp3\/thread\.ts$/],
  ['rtp.js', /^(media\/quality|test)\//],
  ['werift', /^(media\/webrtc|test)\//],
  ['fast-check', /^test\/support\/properties\.ts$/],
  ['ws', /^(bench\/agents|signaling\/edge|media\/(forks|relay|speech)|control|test)\//],
  ['sip.js', /^(control\/console|test)\//],
]
