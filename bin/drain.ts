import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { counted } from '../core/domain/text/counted.ts'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { callsOfNode } from '../core/state/calls/running-calls.ts'
import type { State } from '../core/state/index.ts'
import { askToDrain, signalingNodes } from '../core/state/nodes/nodes.ts'
import { runningSupervisor } from './pid-file.ts'
import { ring, withState } from './state.ts'
import { give, tell } from './terminal.ts'

const LOOK_MS = 500

/** What `--json` says of a drain. */
interface Change {
  readonly state: 'active' | 'draining' | 'stopped'
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
        const pid = runningSupervisor(config.run_dir)
        if (pid === null) throw new StartRefused(`no platform runs on ${config.data_dir}`)
        const { machine_id } = machineOf(config.data_dir)
        if ((await askToDrain(state.db, machine_id, options.cancel ? null : state.clock.now())) === 0)
          throw new StartRefused('no signaling node runs: look at the log of the platform')
        await ring(config, 'nodes')
        const say = options.json ? (_text: string, change: Change) => give(`${JSON.stringify(change)}\n`) : tell
        if (options.cancel) return say('new calls are taken again\n', { state: 'active' })
        const calls = await running(state, machine_id)
        const before = `no new call is taken; ${counted(calls, 'call goes', 'calls go')} on`
        say(`${before}, the platform stops when the last has ended\n`, { state: 'draining', calls })
        if (!options.wait) return
        await ended(state, machine_id, {
          runs: () => runningSupervisor(config.run_dir) === pid,
          changed: calls => say(`${counted(calls, 'call')}\n`, { state: 'draining', calls }),
        })
        say('stopped\n', { state: 'stopped' })
      }),
    )
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
