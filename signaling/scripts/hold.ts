import type { PlaySource } from '../../media/protocol/schema.ts'

/** What a waiting caller hears when nobody chose anything else: two soft tones now and then. */
export const hold: PlaySource[] = [
  { kind: 'tone', hz: [392], on_ms: 250, off_ms: 0, total_ms: 250 },
  { kind: 'tone', hz: [523.25], on_ms: 350, off_ms: 0, total_ms: 350 },
  { kind: 'silence', ms: 3400 },
]
