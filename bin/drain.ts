import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { counted } from '../core/domain/text/counted.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { askWorks } from '../core/runtime/works.ts'
import { callsOfNode } from '../core/state/calls/running-calls.ts'
import type { State } from '../core/state/index.ts'
import { askToDrain, signalingNodes } from '../core/state/nodes/nodes.ts'
import { refuseElsewhere, runningSupervisor } from './pid-file.ts'
import { ring, withState } from './state.ts'
import { give, tell } from './terminal.ts'

const LOOK_MS = 500
/** A node looks at its row each 2 s, whatever becomes of the ring. A stalled machine takes longer. */
const HEARS_WITHIN_MS = 30_000
const ASK_AGAIN_MS = 50

/** What `--json` says of a drain. */
interface Change {
  /** `asked`: signaling has not said that it hears. */
  readonly state: 'active' | 'asked' | 'draining' | 'stopped'
  readonly calls?: number
}

/** Takes the platform out of service without ending calls. */
export function drainCommand(): Command {
  return new Command('drain')
    .option('--wait', 'return when the platform has stopped')
    .option('--cancel', 'take new calls again')
    .option('--json', 'as JSON, a line for each change')
    .action((options: { wait?: true; cancel?: true; json?: true }) =>
      withState(async (state, config) => {
        await refuseElsewhere(config.run_dir)
        const pid = runningSupervisor(config.run_dir)
        if (pid === null) throw new StartRefused(`no platform runs on ${config.data_dir}`)
        const { machine_id } = machineOf(config.data_dir)
        if ((await askToDrain(state.db, machine_id, options.cancel ? null : state.clock.now())) === 0)
          throw new StartRefused('no signaling node runs: look at the log of the platform')
        await ring(config, 'nodes')
        const say = options.json ? (_text: string, change: Change) => give(`${JSON.stringify(change)}\n`) : tell
        const heard = await hears({ run_dir: config.run_dir, pid, drains: !options.cancel })
        const asked = 'signaling is asked, and has not answered yet: look at the log of the platform\n'
        if (options.cancel) return heard ? say('new calls are taken again\n', { state: 'active' }) : say(asked, ASKED)
        if (!heard) say(asked, ASKED)
        const calls = await running(state, machine_id)
        const before = `${heard ? 'no new call is taken; ' : ''}${counted(calls, 'call goes', 'calls go')} on`
        say(`${before}, the platform stops when the last has ended\n`, { state: heard ? 'draining' : 'asked', calls })
        if (!options.wait) return
        await ended(state, machine_id, {
          runs: () => runningSupervisor(config.run_dir) === pid,
          changed: calls => say(`${counted(calls, 'call')}\n`, { state: 'draining', calls }),
        })
        say('stopped\n', { state: 'stopped' })
      }),
    )
}

const ASKED: Change = { state: 'asked' }

/** Waits until signaling says that it drains, or that it takes calls again. A platform that has stopped drains. */
async function hears(of: {
  readonly run_dir: string
  readonly pid: number
  readonly drains: boolean
}): Promise<boolean> {
  const deadline_ms = performance.now() + HEARS_WITHIN_MS
  while (performance.now() < deadline_ms) {
    if (runningSupervisor(of.run_dir) !== of.pid) return of.drains
    const { signaling } = await askWorks(of.run_dir, 'signaling')
    if (signaling === !of.drains) return true
    await sleep(ASK_AGAIN_MS)
  }
  return false
}

interface Watch {
  runs(): boolean
  changed(calls: number): void
}

/** Reports the number of remaining calls whenever it changes, until the platform has stopped. */
async function ended(state: State, machine_id: string, { runs, changed }: Watch): Promise<void> {
  let reported = -1
  while (runs()) {
    const calls = await running(state, machine_id)
    if (calls !== reported) changed(calls)
    reported = calls
    await sleep(LOOK_MS)
    if (runs() && !(await signalingNodes(state.db, machine_id)).every(node => node.draining_at !== null))
      throw new StartRefused('the drain was cancelled')
  }
}

async function running(state: State, machine_id: string): Promise<number> {
  const nodes = await signalingNodes(state.db, machine_id)
  const calls = await Promise.all(nodes.map(node => callsOfNode(state.db, node.id)))
  return calls.flat().length
}
