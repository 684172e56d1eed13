import { readFileSync } from 'node:fs'

// Reads the recorded conversations of fixtures/drachtio-transcripts (format in its README).

type Direction = 'C>S' | 'S>C' | 'N>S' | 'S>N'

export type TranscriptEvent =
  | { readonly kind: 'remark'; readonly at_ms: number; readonly text: string }
  | {
      readonly kind: 'message'
      readonly at_ms: number
      readonly direction: Direction
      readonly name: string
      /** Payload as a byte string; truncated when it is shorter than `length`. */
      readonly text: string
      readonly length: number
      readonly unparsed: boolean
    }

export function readTranscript(path: string): TranscriptEvent[] {
  const data = readFileSync(path).toString('latin1')
  const events: TranscriptEvent[] = []
  let at = 0
  while (at < data.length) {
    const end = data.indexOf('\n', at)
    const line = data.slice(at, end < 0 ? data.length : end)
    at = end < 0 ? data.length : end + 1
    const remark = /^## \+(\d+)ms (.*)$/.exec(line)
    if (remark) events.push({ kind: 'remark', at_ms: Number(remark[1]), text: remark[2] ?? '' })
    const head = /^@@ \+(\d+)ms (C>S|S>C|N>S|S>N) (\S+) len=(\d+)(?: ([a-z]+))?(?: stored=(\d+))?$/.exec(line)
    if (!head) continue
    const length = Number(head[4])
    const stored = head[6] === undefined ? length : Number(head[6])
    events.push({
      kind: 'message',
      at_ms: Number(head[1]),
      direction: head[2] as Direction,
      name: head[3] ?? '',
      text: data.slice(at, at + stored),
      length,
      unparsed: head[5] === 'unparsed',
    })
    at += stored + 1
  }
  return events
}
