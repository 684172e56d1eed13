import type { PlaySource } from '../../media/protocol/schema.ts'

/** The default sound for a waiting caller: two soft tones every few seconds. */
export const hold: PlaySource[] = [
  { kind: 'tone', hz: [392], on_ms: 250, off_ms: 0, total_ms: 250 },
  { kind: 'tone', hz: [523.25], on_ms: 350, off_ms: 0, total_ms: 350 },
  { kind: 'silence', ms: 3400 },
]
