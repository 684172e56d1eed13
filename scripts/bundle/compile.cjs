// Puts beside each chunk of the bundle in FOLDER the code that V8 makes of it: node compile.cjs FOLDER. Whoever ships a
// bundle with another Node.js compiles it by that one (scripts/release). It then loads all commands once and keeps the
// code of the functions that ran meanwhile too (decision 0700).
'use strict'
const { readFileSync, writeFileSync } = require('node:fs')
const { join, resolve } = require('node:path')

const [node, , given] = process.argv
const folder = resolve(given)
const { compiledAt, load, onScript, scriptOf } = require(join(folder, 'load.cjs'))
const keep = (path, script) => writeFileSync(compiledAt(join(folder, path)), script.createCachedData())

const chunks = JSON.parse(readFileSync(join(folder, 'files.json'), 'utf8')).filter(name =>
  /^chunks\/.*\.js$/.test(name),
)
for (const path of chunks) keep(path, scriptOf(folder, path))
const ran = new Map()
onScript((path, script) => ran.set(path, script))
process.on('exit', () => {
  for (const [path, script] of ran) keep(path, script)
})
// The completion of a shell names the options of all commands.
process.argv = [node, 'strowger', 'completion', 'bash']
load(chunks.find(path => /^chunks\/bin\/main-/.test(path)))
