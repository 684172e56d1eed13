import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import threads, { type MessagePort } from 'node:worker_threads'

// A thread that runs the bundle of the state's thread (core/state/sqlite/worker.ts) for one connection after another.
// `threads.ts` starts it.

/** What the thread says when its connection is closed. */
export const RESTS = 'rests'

/** The part of scripts/bundle/load.cjs that runs a chunk again. */
interface Loader {
  load(chunk: string): unknown
  readonly loaded: Map<string, unknown>
}

const { parentPort, workerData } = threads
if (parentPort) {
  const { entry } = workerData as { readonly entry: string }
  const [, loader = '', chunk = ''] = /\(("[^"]+")\)\.load\("([^"]+)"\)/.exec(readFileSync(entry, 'utf8')) ?? []
  const { load, loaded } = createRequire(entry)(JSON.parse(loader)) as Loader
  parentPort.on('message', ({ port, data }: { readonly port: MessagePort; readonly data: unknown }) => {
    Object.assign(threads, { parentPort: port, workerData: data })
    port.once('close', () => parentPort.postMessage(RESTS))
    loaded.delete(chunk)
    load(chunk)
  })
}
