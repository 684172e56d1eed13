import { readFileSync } from 'node:fs'

const DICTIONARY = '/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict'
/** Silence around the utterance, by which the recogniser finds its beginning and end. At 8 kHz. */
const BEFORE = 2400
const AFTER = 4000
/** The share of the mirrored band, by experiment. */
const MIRRORED = 0.8

/**
 * Returns speech of 8 kHz at the 16 kHz of the model. The model expects sound above 4 kHz, which a telephone does not
 * carry. Without any, hardly a word is recognised; so the band below is mirrored into it.
 */
export function toWideband(samples: Int16Array): Int16Array {
  const wide = new Int16Array((BEFORE + samples.length + AFTER) * 2)
  const at = (index: number) => samples[index] ?? 0
  for (let index = 0; index < samples.length; index++) {
    const between = 0.6 * (at(index) + at(index + 1)) - 0.1 * (at(index - 1) + at(index + 2))
    wide[(BEFORE + index) * 2] = at(index)
    wide[(BEFORE + index) * 2 + 1] = Math.round(Math.max(-32_767, Math.min(32_767, between * (1 - MIRRORED))))
  }
  return wide
}

let known: ReadonlySet<string> | null = null

/** The words that the model can hear. */
function dictionary(): ReadonlySet<string> {
  known ??= new Set(
    readFileSync(DICTIONARY, 'latin1')
      .split('\n')
      .map(line => line.slice(0, line.indexOf(' '))),
  )
  return known
}

/** Returns a grammar (JSGF) of the phrases; null when the model can hear none of them. */
export function hintGrammar(hints: readonly string[], words: () => ReadonlySet<string> = dictionary): string | null {
  if (hints.length === 0) return null
  const vocabulary = words()
  const phrases = hints
    .map(hint => hint.toLowerCase().match(/[a-z']+/g) ?? [])
    .filter(phrase => phrase.length > 0 && phrase.every(word => vocabulary.has(word)))
    .map(phrase => phrase.join(' '))
  if (phrases.length === 0) return null
  return `#JSGF V1.0;\ngrammar hints;\npublic <hint> = ${[...new Set(phrases)].join(' | ')};\n`
}
