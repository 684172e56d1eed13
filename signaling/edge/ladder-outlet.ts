import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { jsonLine, readJsonLines } from '../../core/runtime/json-lines.ts'
import type { FromEdge, ToEdge } from '../../core/runtime/ladder-link.ts'
import type { Log } from '../../core/runtime/log.ts'
import type { NewMessage } from '../../core/state/calls/ladder.ts'

/** Rows that are handed over at once. */
const BATCH = 500

interface Batch {
  readonly id: number
  readonly rows: readonly NewMessage[]
  again: boolean
  readonly settle: (kept: boolean) => void
}

/** Where the messages of calls go: to the node that writes them, as soon as one is connected. */
export interface LadderOutlet {
  /** Resolves when the rows are kept, or lost for good; one call after the other. */
  give(rows: readonly NewMessage[], again: boolean): Promise<boolean>
  /** Called when the writer is about to go; all that was given when it resolves has been kept. */
  drain: () => Promise<void>
  close(): void
}

export function openLadderOutlet(path: string, log: Log): Promise<LadderOutlet> {
  let taker: Socket | undefined
  let open: Batch | undefined
  let next_id = 1

  const say = (message: FromEdge<NewMessage>): void => void taker?.write(jsonLine(message))
  const send = (): void => {
    if (open && taker) say({ kind: 'rows', id: open.id, again: open.again, rows: open.rows })
  }
  const hear = (message: ToEdge): void => {
    if (message.kind === 'drain') void outlet.drain().then(() => say({ kind: 'drained' }))
    else if (open?.id === message.id) open.settle(message.kind === 'kept')
  }
  const giveBatch = (rows: readonly NewMessage[], again: boolean): Promise<boolean> =>
    new Promise(resolve => {
      const settle = (kept: boolean): void => {
        open = undefined
        resolve(kept)
      }
      open = { id: next_id++, rows, again, settle }
      send()
    })
  const outlet: LadderOutlet = {
    async give(rows, again) {
      let kept = true
      for (let at = 0; at < rows.length; at += BATCH)
        kept = (await giveBatch(rows.slice(at, at + BATCH), again)) && kept
      return kept
    },
    drain: () => Promise.resolve(),
    close: () => {
      server.close()
      taker?.destroy()
    },
  }
  // The node that came last is the one that runs.
  const server = createServer(socket => {
    taker?.destroy()
    taker = socket
    // The one before may have kept what it has not confirmed.
    if (open) open.again = true
    readJsonLines(socket, value => hear(value as ToEdge))
    socket.on('error', err => log.debug({ err }, 'the writer of SIP messages went away'))
    socket.on('close', () => {
      if (taker === socket) taker = undefined
    })
    send()
  })
  rmSync(path, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(outlet))
  })
}
