import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { resolve, sep } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { connect, createServer as createTlsServer } from 'node:tls'
import type { Log } from './log.ts'
import { MACHINE_TLS } from './machine-tls.ts'
import { openPlainFile } from './plain-file.ts'
import type { ByteSource } from './sealed-file.ts'

// Machines read each other's recordings, exports and logs of runs: ranges of files by HTTP, over TLS with a pre-shared
// key (RFC 5489) that is derived from the master key. Whoever completes the handshake is a machine of ours. It sends
// what lies on the disk, so a sealed file stays sealed on the way.

const HANDSHAKE_MS = 5000
const ANSWER_MS = 5000
const MAX_CONNECTIONS = 256
/** The longest range of a request. */
const MAX_BYTES = 1024 * 1024
/** The folders of the data folder from which others read. */
const FOLDERS = ['recordings', 'exports', 'runs']
const TOTAL = 'x-total-bytes'

/** Where a machine is heard. */
interface At {
  readonly host: string
  readonly port: number
}

/** The port for files is the one after the edge's. */
export const filesAt = ({ host, port }: At): At => ({ host, port: port + 1 })

/** A file of another machine cannot be read. `missing`: that machine does not have it. */
export class MachineFileError extends Error {
  readonly missing: boolean

  constructor(message: string, missing: boolean, options?: ErrorOptions) {
    super(message, options)
    this.missing = missing
  }
}

/** Lets the other machines read the files of this one. Rejects when the port is taken. */
export function serveFiles(
  at: At,
  { key, data_dir, log }: { readonly key: Buffer; readonly data_dir: string; readonly log: Log },
): Promise<{ close(): void }> {
  const http = createServer((asked, answer) => {
    sendRange(data_dir, asked, answer).catch(err => {
      const { code } = err as NodeJS.ErrnoException
      if (code !== 'ENOENT') log.warn({ err, url: asked.url }, 'a file for another machine cannot be read')
      if (answer.headersSent) answer.destroy()
      else answer.writeHead(code === 'ENOENT' ? 404 : 500).end()
    })
  })
  const tls = createTlsServer({ ...MACHINE_TLS, handshakeTimeout: HANDSHAKE_MS, pskCallback: () => key })
  tls.maxConnections = MAX_CONNECTIONS
  tls.on('secureConnection', socket => void http.emit('connection', socket))
  tls.on('tlsClientError', err => log.debug({ err }, 'a connection to the port for files of machines was refused'))
  return new Promise((resolve, reject) => {
    tls.once('error', reject)
    tls.listen(at.port, at.host, () => resolve({ close: () => closeAll(tls, http) }))
  })
}

function closeAll(tls: { close(): void }, http: Server): void {
  tls.close()
  http.closeAllConnections()
}

async function sendRange(data_dir: string, asked: IncomingMessage, answer: ServerResponse): Promise<void> {
  const path = pathOf(data_dir, asked.url ?? '')
  const [, first, last] = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(asked.headers.range ?? '') ?? []
  const [from, to] = [Number(first), Number(last)]
  if (path === null || asked.method !== 'GET' || !(to >= from && to - from < MAX_BYTES)) {
    answer.writeHead(400).end()
    return
  }
  const handle = await openPlainFile(path)
  try {
    const { size } = await handle.stat()
    const bytes = Buffer.alloc(Math.max(0, Math.min(size - 1, to) - from + 1))
    let filled = 0
    while (filled < bytes.length) {
      const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, from + filled)
      if (bytesRead === 0) throw new Error('the file ended early')
      filled += bytesRead
    }
    answer.writeHead(206, { [TOTAL]: String(size), 'content-length': bytes.length }).end(bytes)
  } finally {
    await handle.close()
  }
}

/** The path of a file that others may read; null for any other. */
function pathOf(data_dir: string, url: string): string | null {
  const root = resolve(data_dir)
  // Hidden folders hold what is not for others, such as the sounds that a call plays.
  if (!/^\/[\w-][\w.-]*(\/[\w-][\w.-]*)+$/.test(url)) return null
  const path = resolve(root, url.slice(1))
  return FOLDERS.some(folder => path.startsWith(`${root}${sep}${folder}${sep}`)) ? path : null
}

/** The files of the other machines. */
export class MachineFiles {
  /** The id of this machine. */
  readonly own_id: string
  /** Returns where the edge of a machine is heard by others; undefined when it is not. */
  readonly #find: (machine_id: string) => Promise<At | undefined>
  readonly #agent: Agent

  constructor(own_id: string, key: Buffer, find: (machine_id: string) => Promise<At | undefined>) {
    this.own_id = own_id
    this.#find = find
    this.#agent = new MachineAgent(own_id, key)
  }

  /** Whether a file of `machine_id` lies elsewhere. Rows of installations with one machine name none. */
  isElsewhere(machine_id: string): boolean {
    return machine_id !== '' && machine_id !== this.own_id
  }

  /** Returns the size of a file as it lies there. @throws MachineFileError */
  async size(machine_id: string, file: string): Promise<number> {
    return (await this.#range(machine_id, file, 0, 1)).total
  }

  source(machine_id: string, file: string): ByteSource {
    return {
      read: async (position, length) => {
        const { bytes } = await this.#range(machine_id, file, position, length)
        if (bytes.length < length) throw new Error(`the file ${file} of another machine ended early`)
        return bytes
      },
      close: () => Promise.resolve(),
    }
  }

  /** Yields a file from `first` to `last` inclusive, as it lies there. @throws MachineFileError */
  async *read(machine_id: string, file: string, first: number, last: number): AsyncGenerator<Buffer> {
    const source = this.source(machine_id, file)
    for (let at = first; at <= last; at += MAX_BYTES) yield await source.read(at, Math.min(MAX_BYTES, last - at + 1))
  }

  /** Reads a whole file; null when that machine does not have it. @throws MachineFileError when it does not answer */
  async whole(machine_id: string, file: string): Promise<Buffer | null> {
    try {
      const bytes = await this.size(machine_id, file)
      return await buffer(this.read(machine_id, file, 0, bytes - 1))
    } catch (error) {
      if (error instanceof MachineFileError && error.missing) return null
      throw error
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #range(
    machine_id: string,
    file: string,
    position: number,
    length: number,
  ): Promise<{ readonly bytes: Buffer; readonly total: number }> {
    const edge = await this.#find(machine_id)
    if (!edge) throw new MachineFileError('the machine that has the file has no STROWGER_LINK', false)
    const { host, port } = filesAt(edge)
    const away = (cause: unknown): MachineFileError =>
      new MachineFileError(`the machine at ${host}, which has the file, does not answer`, false, { cause })
    try {
      const { status, headers, bytes } = await this.#get({ host, port }, file, position, length)
      if (status === 404) throw new MachineFileError(`the machine at ${host} does not have the file`, true)
      if (status !== 206) throw away(new Error(`it answers ${status}`))
      return { bytes, total: Number(headers[TOTAL]) }
    } catch (err) {
      throw err instanceof MachineFileError ? err : away(err)
    }
  }

  #get({ host, port }: At, file: string, position: number, length: number) {
    return new Promise<{ status: number; headers: IncomingMessage['headers']; bytes: Buffer }>((found, failed) => {
      const asked = request(
        {
          agent: this.#agent,
          host,
          port,
          path: `/${file}`,
          timeout: ANSWER_MS,
          headers: { range: `bytes=${position}-${position + length - 1}` },
        },
        answer => {
          buffer(answer).then(
            bytes => found({ status: answer.statusCode ?? 0, headers: answer.headers, bytes }),
            failed,
          )
        },
      )
      asked.on('timeout', () => asked.destroy(new Error('timed out')))
      asked.on('error', failed)
      asked.end()
    })
  }
}

class MachineAgent extends Agent {
  readonly #own_id: string
  readonly #key: Buffer

  constructor(own_id: string, key: Buffer) {
    super({ keepAlive: true, maxSockets: 16 })
    this.#own_id = own_id
    this.#key = key
  }

  override createConnection(to: { readonly host?: string; readonly port?: number | string }) {
    return connect({
      ...MACHINE_TLS,
      host: to.host ?? '',
      port: Number(to.port),
      pskCallback: () => ({ psk: this.#key, identity: this.#own_id }),
      checkServerIdentity: () => undefined,
    })
  }
}
