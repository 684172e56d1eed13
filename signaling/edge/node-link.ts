import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import type { CallMessage } from '../../core/domain/ladder/message.ts'
import type { Beat, EdgeFacts, FromEdge, GuardedSource, MachineLinks, ToEdge } from '../../core/runtime/edge-link.ts'
import { jsonLine, readJsonLines } from '../../core/runtime/json-lines.ts'
import type { Log } from '../../core/runtime/log.ts'

/** Messages per batch. */
const BATCH = 500

interface Batch {
  readonly id: number
  readonly messages: readonly CallMessage[]
  again: boolean
  readonly settle: (kept: boolean) => void
}

interface Question {
  readonly answer: (message: ToEdge) => void
  readonly fail: (error: Error) => void
}

/** The edge's end of its link to the signaling node. */
export interface NodeLink {
  /**
   * Hands over messages of calls. Resolves to true when all are kept, to false when some are lost. Calls must not
   * overlap.
   */
  give(messages: readonly CallMessage[], again: boolean): Promise<boolean>
  /** Tells the node what a node of another machine says. */
  beat(beat: Beat): void
  /** Returns the messages of calls that have not ended, and of these Call-IDs. Rejects when no node answers. */
  leftMessages(sip_call_ids: readonly string[]): Promise<readonly CallMessage[]>
  /** Returns the call that each Call-ID belongs to. Rejects when no node answers. */
  callsOf(sip_call_ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Hands the node what another machine's node says to it. Without a node it is lost. */
  note(from: string, text: string): void
  /** Tells the node of a failed try, or that it is made up for. Without a node it counts at this edge alone. */
  tried(source: GuardedSource, failed: boolean): void
  /** Called with a source that has failed too often on all machines together. */
  onShut: (source: GuardedSource, ms: number) => void
  /** Called with what the node says to another machine's node. */
  onNote: (to: string, text: string) => void
  /** Called when a node connects, before it sends facts, with the key of the nonces that all machines accept. */
  onNonces: (key: Buffer | null) => void
  /** Called when a node connects and after each change, when this machine has links to others. */
  onMachines: (links: MachineLinks) => void
  /** Called with what the node says to those of the other machines. */
  onBeat: (beat: Beat) => void
  /** Called when a node connects and after each change of the configuration. */
  onFacts: (facts: EdgeFacts) => void
  /** Called when the node is about to stop. The node waits until this resolves, so that pending messages are kept. */
  onDrain: () => Promise<void>
  close(): void
}

/** Listens for the node. A node that connects replaces the one before. */
export function openNodeLink(path: string, log: Log): Promise<NodeLink> {
  let node: Socket | undefined
  let open: Batch | undefined
  let next_id = 1
  const questions = new Map<number, Question>()

  const say = (message: FromEdge): void => void node?.write(jsonLine(message))
  const send = (): void => {
    if (open && node) say({ kind: 'messages', id: open.id, again: open.again, messages: open.messages })
  }
  const hear = (message: ToEdge): void => {
    if (message.kind === 'nonces') link.onNonces(message.key === null ? null : Buffer.from(message.key, 'hex'))
    else if (message.kind === 'machines') link.onMachines(message.links)
    else if (message.kind === 'beat') link.onBeat(message.beat)
    else if (message.kind === 'note') link.onNote(message.to, message.text)
    else if (message.kind === 'shut') link.onShut(message.source, message.ms)
    else if (message.kind === 'facts') link.onFacts(message.facts)
    else if (message.kind === 'drain') void link.onDrain().then(() => say({ kind: 'drained' }))
    else if (message.kind === 'kept' || message.kind === 'lost') {
      if (open?.id === message.id) open.settle(message.kind === 'kept')
    } else questions.get(message.id)?.answer(message)
  }
  const giveBatch = (messages: readonly CallMessage[], again: boolean): Promise<boolean> =>
    new Promise(resolve => {
      const settle = (kept: boolean): void => {
        open = undefined
        resolve(kept)
      }
      open = { id: next_id++, messages, again, settle }
      send()
    })
  const ask = (kind: 'left' | 'calls', sip_call_ids: readonly string[]): Promise<ToEdge> => {
    if (!node) return Promise.reject(new Error('no signaling node is connected'))
    const id = next_id++
    const answered = new Promise<ToEdge>((answer, fail) => questions.set(id, { answer, fail }))
    say({ kind, id, sip_call_ids })
    return answered.finally(() => questions.delete(id))
  }
  const gone = (): void => {
    for (const { fail } of questions.values()) fail(new Error('the signaling node has disconnected'))
  }
  const link: NodeLink = {
    async give(messages, again) {
      let kept = true
      for (let at = 0; at < messages.length; at += BATCH)
        kept = (await giveBatch(messages.slice(at, at + BATCH), again)) && kept
      return kept
    },
    beat: beat => say({ kind: 'beat', beat }),
    async leftMessages(sip_call_ids) {
      const answer = await ask('left', sip_call_ids)
      if (answer.kind !== 'left') throw new Error('the signaling node could not read the messages of lost calls')
      return answer.messages
    },
    async callsOf(sip_call_ids) {
      const answer = await ask('calls', sip_call_ids)
      if (answer.kind !== 'calls') throw new Error('the signaling node could not read the calls of Call-IDs')
      return new Map(answer.calls)
    },
    note: (from, text) => say({ kind: 'note', from, text }),
    tried: (source, failed) => say({ kind: 'tried', source, failed }),
    onShut: () => undefined,
    onNote: () => undefined,
    onNonces: () => undefined,
    onMachines: () => undefined,
    onBeat: () => undefined,
    onFacts: () => undefined,
    onDrain: () => Promise.resolve(),
    close: () => {
      server.close()
      node?.destroy()
      gone()
    },
  }
  const server = createServer(socket => {
    node?.destroy()
    gone()
    node = socket
    // The previous node may have kept messages without confirming them.
    if (open) open.again = true
    readJsonLines(socket, value => hear(value as ToEdge))
    socket.on('error', err => log.debug({ err }, 'the signaling node has disconnected'))
    socket.on('close', () => {
      if (node !== socket) return
      node = undefined
      gone()
    })
    send()
  })
  rmSync(path, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(link))
  })
}
