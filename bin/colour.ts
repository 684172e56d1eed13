import { terminal } from './terminal.ts'

/** Select Graphic Rendition (ECMA-48, 8.3.117). */
const SEQUENCES = { good: '32', bad: '31', doubtful: '33', title: '1', chosen: '7' } as const
type Tone = keyof typeof SEQUENCES

/** What people should see first in a column of states. */
const TONES: Readonly<Record<Exclude<Tone, 'title' | 'chosen'>, readonly string[]>> = {
  good: ['active', 'answered', 'approved', 'completed', 'held', 'in-progress', 'live', 'ok', 'passed', 'ready'],
  bad: ['busy', 'canceled', 'critical', 'disabled', 'down', 'failed', 'firing', 'gone', 'no-answer', 'refused', 'MEND'],
  doubtful: ['draining', 'pending', 'queued', 'ringing', 'sandbox', 'suspended', 'warning', 'WARN'],
}

export const toneOf = (word: string): Tone | null =>
  (Object.keys(TONES) as (keyof typeof TONES)[]).find(tone => TONES[tone].includes(word)) ?? null

/** Returns the text with its colour where the terminal shows colours. The text must be harmless already. */
export const painted = (text: string, tone: Tone | null): string =>
  tone === null || !terminal().colour ? text : `\u001b[${SEQUENCES[tone]}m${text}\u001b[0m`
