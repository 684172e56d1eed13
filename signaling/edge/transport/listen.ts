import type { Server } from 'node:net'

// Opens listening points.

/** Thrown when a listening point cannot be opened. `code` is Node's, for example EADDRINUSE. */
export class ListenError extends Error {
  readonly code: string
  readonly protocol: string
  readonly port: number

  constructor(protocol: string, host: string, port: number, cause: NodeJS.ErrnoException) {
    const what = cause.code === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${cause.code ?? cause.message})`
    super(`${protocol} port ${port} on ${host} ${what}`, { cause })
    this.name = 'ListenError'
    this.code = cause.code ?? 'ELISTEN'
    this.protocol = protocol
    this.port = port
  }
}

/** Listens on an address. A listener on an IPv6 address does not accept IPv4. */
export async function listenOn(
  server: Server,
  wanted: { readonly protocol: string; readonly host: string; readonly port: number },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const failed = (cause: Error): void => reject(new ListenError(wanted.protocol, wanted.host, wanted.port, cause))
    server.once('error', failed)
    server.listen({ port: wanted.port, host: wanted.host, ipv6Only: true }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

/** Returns the port on which a server listens. */
export function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}
