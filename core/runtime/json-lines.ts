import type { Socket } from 'node:net'

/**
 * One JSON value a line, on a socket between our own processes. Lines end at a line feed alone: readline also takes
 * U+2028, which JSON leaves as it is.
 */
export function readJsonLines(socket: Socket, hear: (value: unknown) => void): void {
  let parts: Buffer[] = []
  socket.on('data', (chunk: Buffer) => {
    let rest = chunk
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const line = Buffer.concat([...parts, rest.subarray(0, end)])
      parts = []
      rest = rest.subarray(end + 1)
      hear(JSON.parse(line.toString('utf8')))
    }
    if (rest.length > 0) parts.push(rest)
  })
}

export const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`
