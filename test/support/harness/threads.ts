import { EventEmitter, once } from 'node:events'
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import threads, { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { RESTS } from './state-thread.ts'

/** The path of a module of the product in the compiled tree (core/runtime/tree.ts). */
const COMPILED = /(?<=^\/.*)\/build\/(?!bundle\/|test\/)(.+\.js)$/
const STATE_THREAD = /\/build\/bundle\/core\/state\/sqlite\/worker\.js$/

/** Returns the bundle of a thread's module, where the set-up has made one. */
function bundleOf(module: string | URL): string | URL {
  const bundle = String(module).replace(COMPILED, '/build/bundle/$1')
  return existsSync(bundle) ? bundle : module
}

/**
 * Makes threads of the product run from their bundle, which is what users run. A test opens the state several times,
 * and the state's thread starts from its bundle in a quarter of the CPU time. One that has ended serves the next.
 */
export function useBundledThreads(): void {
  threads.Worker = new Proxy(Worker, {
    construct(worker, [module, options]: ConstructorParameters<typeof Worker>) {
      const bundle = bundleOf(module)
      return STATE_THREAD.test(String(bundle))
        ? new StateThread(String(bundle), options?.workerData)
        : new worker(bundle, options)
    },
  })
  syncBuiltinESMExports()
}

const HOST = fileURLToPath(new URL('state-thread.js', import.meta.url))
/** Threads whose connection is closed. */
const resting: Worker[] = []
/** Node.js takes 50 ms of CPU time to start a thread. */
const MOST_RESTING = 4

/** The part of a Worker that the state uses, on a thread that may have served other connections before. */
class StateThread extends EventEmitter {
  readonly #port: MessagePort
  readonly #thread: Worker

  constructor(entry: string, data: unknown) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', message => this.emit('message', message))
    const thread = resting.pop() ?? new Worker(HOST, { workerData: { entry } })
    this.#thread = thread
    const failed = (error: unknown): void => void this.emit('error', error)
    thread.on('error', failed)
    let died: () => void = () => undefined
    const lives = new Promise<boolean>(resolve => {
      died = () => resolve(false)
      thread.once('message', (told: unknown) => resolve(told === RESTS))
      thread.once('exit', died)
    })
    // The last message of a connection comes before its port is closed.
    void Promise.all([lives, once(port1, 'close')]).then(([rests]) => {
      thread.off('error', failed).off('exit', died)
      thread.unref()
      if (rests && resting.length < MOST_RESTING) resting.push(thread)
      else void thread.terminate()
      this.emit('exit')
    })
    thread.postMessage({ port: port2, data }, [port2])
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message)
  }

  ref(): void {
    this.#port.ref()
    this.#thread.ref()
  }

  unref(): void {
    this.#port.unref()
    this.#thread.unref()
  }
}
