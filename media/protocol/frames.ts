import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { MAX_FRAME_BYTES } from './schema.ts'

/**
 * Splits a byte stream into JSON objects, one per line. `onBroken` is called at most once; the connection is then
 * unusable.
 */
export function frameReader(onFrame: (frame: Record<string, unknown>) => void, onBroken: (detail: string) => void) {
  const decoder = new StringDecoder('utf8')
  let pending = ''
  let broken = false
  return (chunk: Buffer) => {
    if (broken) return
    pending += decoder.write(chunk)
    let end = pending.indexOf('\n')
    while (end >= 0 && !broken) {
      const line = pending.slice(0, end)
      pending = pending.slice(end + 1)
      const frame = parseObject(line)
      if (frame) onFrame(frame)
      else {
        broken = true
        onBroken('a frame is not a JSON object')
      }
      end = pending.indexOf('\n')
    }
    if (!broken && pending.length > MAX_FRAME_BYTES) {
      broken = true
      onBroken(`a frame is longer than ${MAX_FRAME_BYTES} bytes`)
    }
  }
}

/** Writes all frames of one turn of the event loop by one system call. `written` is called after each write. */
export function frameWriter(socket: Socket, written: () => void = () => undefined): (value: unknown) => void {
  let waiting = ''
  const write = (): void => {
    const text = waiting
    waiting = ''
    if (socket.destroyed) return
    socket.write(text)
    written()
  }
  return value => {
    if (waiting === '') setImmediate(write)
    waiting += `${JSON.stringify(value)}\n`
  }
}

function parseObject(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null
  } catch {
    return null
  }
}
