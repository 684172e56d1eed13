import type { Socket } from 'node:net'

/**
 * Reads one JSON value per line from a socket between our own processes. Only a line feed ends a line. readline would
 * also split at U+2028, which JSON does not escape.
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
