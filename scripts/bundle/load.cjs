// Loads the chunks of the bundle in whose folder it lies, with the code that V8 compiled of each when the bundle was
// made: to compile is a quarter of a start (decision 0700). A V8 of another version or with other flags compiles them.
'use strict'
const { readFileSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { Script } = require('node:vm')

/** What V8 compiled of a chunk lies beside it. The name of a chunk has the hash of its text, so it is of this text. */
const compiledAt = file => `${file}.code`

/**
 * Returns a chunk of the bundle in `folder` as a script, with the lines and columns of its file. Compiled code keeps
 * the name of the script that it was made of, so the name is relative to the tree, which may be copied
 * (core/runtime/typescript-stacks.ts). It loses what `import()` needs, so that chunks call `Import`.
 */
function scriptOf(folder, path, cachedData) {
  // The bundle is in ASCII.
  const text = readFileSync(join(folder, path), 'latin1')
  const whole = `(function (exports, require, module, __filename, __dirname, Import) { 'use strict';\n${text}\n})`
  return new Script(whole, { filename: `build/bundle/${path}`, lineOffset: -1, cachedData })
}

function compiled(path) {
  try {
    return readFileSync(compiledAt(join(__dirname, path)))
  } catch {
    return undefined
  }
}

/** The chunks that are loaded, by their path in the bundle. */
const loaded = new Map()
/** Is told each script that runs (scripts/bundle/compile.cjs). */
let told = null

/** Loads a chunk by its path in the bundle. Returns what it exports. */
function load(path) {
  const known = loaded.get(path)
  if (known) return known.exports
  const chunk = { exports: {} }
  loaded.set(path, chunk)
  const file = join(__dirname, path)
  const requires = name => (name.startsWith('.') ? load(join(dirname(path), name)) : require(name))
  try {
    const script = scriptOf(__dirname, path, compiled(path))
    told?.(path, script)
    const run = script.runInThisContext()
    run(chunk.exports, requires, chunk, file, dirname(file), name => import(name))
  } catch (error) {
    // What failed for want of a descriptor, say, may be tried again.
    loaded.delete(path)
    throw error
  }
  return chunk.exports
}

const onScript = tell => {
  told = tell
}

module.exports = { load, loaded, onScript, scriptOf, compiledAt }
