import type { Turn } from '../interpreter/turn.ts'

/** Returns the engine that a document names, when this installation has it; else null. */
export function namedEngine(name: string | null, kind: 'stt' | 'tts', { facts }: Turn): string | null {
  const wanted = name?.toLowerCase()
  return facts.speech.choices?.[kind].find(engine => engine === wanted) ?? null
}
