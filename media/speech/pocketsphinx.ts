import { POCKETSPHINX } from '../../core/domain/speech/engines.ts'
import { bareFile, runBare } from '../../core/runtime/bare-child.ts'
import { FairQueue } from '../files/fair-queue.ts'
import { byUtterance, type Utterance } from './by-utterance.ts'
import { hintGrammar, toWideband } from './pocketsphinx-input.ts'
import type { Recognizer, Result } from './recognizer.ts'

/** One project can occupy all processes but one. */
const PROCESSES = { at_once: 2, owner_at_once: 1, owner_jobs: 20, owner_bytes: 32 * 1024 * 1024 }
const TIMEOUT_MS = 15_000
/** It takes 36 MB with a grammar, and 106 MB with the language model. */
const MAX_MEMORY = 512 * 1024 * 1024
const MAX_BYTES = 64 * 1024
/** It tells no confidence. A phrase of a grammar is surer than free words. */
const CONFIDENCE = { hints: 0.8, free: 0.4 } as const

/**
 * Recognises English without a network, by a child process for each utterance. With hints it first listens for these
 * phrases only, which is much surer; what fits none is recognised by the language model.
 */
export function pocketsphinx(): Recognizer {
  const processes = new FairQueue(PROCESSES)
  return byUtterance(async utterance => {
    const { settings, samples } = utterance
    if (!/^en\b/i.test(settings.language))
      return { fault: `the offline recognizer knows English only, not ${settings.language}` }
    const heard = processes.run(settings.account_sid, samples.byteLength, () => recognize(utterance))
    return (await heard) ?? { fault: 'too much speech of the project waits to be recognised' }
  })
}

type Recognised = Omit<Result, 'final'> | { readonly fault: string }

async function recognize(utterance: Utterance): Promise<Recognised> {
  const grammar = hintGrammar(utterance.settings.hints)
  const hinted = grammar === null ? null : await run(utterance, grammar)
  if (hinted && ('fault' in hinted || hinted.text !== '')) return hinted
  return run(utterance, null)
}

async function run({ samples, track, settings, stop }: Utterance, grammar: string | null): Promise<Recognised> {
  if (stop.aborted) return { fault: 'stopped' }
  const audio = Buffer.from(toWideband(samples).buffer).toString('base64')
  const files = grammar === null ? [audio] : [audio, Buffer.from(grammar).toString('base64')]
  const words = ['-infile', bareFile(0), '-logfn', '/dev/null', ...(grammar === null ? [] : ['-jsgf', bareFile(1)])]
  const end = await runBare(
    POCKETSPHINX,
    words,
    { files, max_memory: MAX_MEMORY, limit_ms: TIMEOUT_MS, max_bytes: MAX_BYTES },
    stop,
  )
  if (!end.ok) return { fault: end.detail }
  // One line for each piece of speech that it found.
  const text = end.stdout
    .toString()
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
    .join(' ')
  const confidence = text === '' ? 0 : grammar === null ? CONFIDENCE.free : CONFIDENCE.hints
  return { track, text, confidence, language: settings.language }
}
