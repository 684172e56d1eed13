import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type BareEnd, type BareRun, runBy } from './bare-child.ts'
import type { Log } from './log.ts'
import { builtModule } from './tree.ts'

/** Message to the process that runs programs (core/runtime/program-runner-process.ts). */
export interface ToRun {
  readonly id: number
  readonly program: string
  readonly args: readonly string[]
  readonly run: BareRun
}

export interface HasRun {
  readonly id: number
  readonly end: BareEnd
}

/**
 * Makes this process run programs as another user from now on, through a child that it starts before it gives up root:
 * afterwards it cannot change users. If the child ends, programs run as our own user and a warning is logged.
 */
export async function runProgramsAs(user: number, log: Log): Promise<void> {
  const child: ChildProcess = fork(builtModule('core/runtime/program-runner-process.js'), [String(user)], {
    cwd: '/',
    env: {},
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the runner of programs ended with ${code}`))),
  ])
  const waiting = new Map<number, (end: BareEnd) => void>()
  let next = 1
  child.on('message', ({ id, end }: HasRun) => {
    waiting.get(id)?.(end)
    waiting.delete(id)
  })
  child.once('exit', (code, signal) => {
    log.warn({ code, signal }, 'the runner of programs has ended: they run as this process from now on')
    runBy(null)
    for (const settle of waiting.values()) settle({ ok: false, too_long: false, detail: 'its runner has ended' })
    waiting.clear()
  })
  // The child ends with this process and does not keep it alive.
  child.unref()
  child.channel?.unref()
  runBy(
    (program, args, run) =>
      new Promise(resolve => {
        const id = next++
        waiting.set(id, resolve)
        child.send({ id, program, args, run } satisfies ToRun)
      }),
  )
}
