// Loads all commands of the bundle in FOLDER, whose chunk is MAIN, and keeps the code of the functions that ran
// meanwhile: node warm.cjs FOLDER MAIN. It compiled the rest already (scripts/bundle.mjs).
'use strict'
const { writeFileSync } = require('node:fs')
const { join, resolve } = require('node:path')

const [node, , folder, main] = process.argv
const { compiledAt, load, onScript } = require(resolve(folder, 'load.cjs'))
const scripts = new Map()
onScript((path, script) => scripts.set(path, script))
process.on('exit', () => {
  for (const [path, script] of scripts) writeFileSync(compiledAt(join(folder, path)), script.createCachedData())
})
// The completion of a shell names the options of all commands.
process.argv = [node, main, 'completion', 'bash']
load(main)
