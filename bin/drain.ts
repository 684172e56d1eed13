import { setTimeout as sleep } from 'node:timers/promises'
import { Command } from 'commander'
import { machineOf } from '../core/runtime/machine.ts'
import { StartRefused } from '../core/runtime/start-refused.ts'
import { callsOfNode } from '../core/state/calls/running-calls.ts'
import type { State } from '../core/state/index.ts'
import { askToDrain, signalingNodes } from '../core/state/nodes/nodes.ts'
import { runningSupervisor } from './pid-file.ts'
import { ring, withState } from './state.ts'

const LOOK_MS = 500

/** Takes the platform out of service without ending calls. */
export function drainCommand(): Command {
  return new Command('drain')
    .option('--wait', 'return when the platform has stopped')
    .option('--cancel', 'take new calls again')
    .action((options: { wait?: true; cancel?: true }) =>
      withState(async (state, config) => {
        const pid = runningSupervisor(config.run_dir)
        if (pid === null) throw new StartRefused(`no platform runs on ${config.data_dir}`)
        const { machine_id } = machineOf(config.data_dir)
        if ((await askToDrain(state.db, machine_id, options.cancel ? null : Date.now())) === 0)
          throw new StartRefused('no signaling node runs: look at the log of the platform')
        await ring(config, 'nodes')
        if (options.cancel) return console.log('new calls are taken again')
        console.log(
          `no new call is taken; ${await running(state, machine_id)} go on, the platform stops when the last has ended`,
        )
        if (options.wait) await ended(state, machine_id, () => runningSupervisor(config.run_dir) === pid)
      }),
    )
}

/** Prints the number of remaining calls whenever it changes, until the platform has stopped. */
async function ended(state: State, machine_id: string, runs: () => boolean): Promise<void> {
  let told = ''
  while (runs()) {
    const line = await running(state, machine_id)
    if (line !== told) console.log(line)
    told = line
    await sleep(LOOK_MS)
    if (runs() && !(await signalingNodes(state.db, machine_id)).every(node => node.draining_at !== null))
      throw new StartRefused('the drain was taken back')
  }
  console.log('stopped')
}

async function running(state: State, machine_id: string): Promise<string> {
  const nodes = await signalingNodes(state.db, machine_id)
  const calls = await Promise.all(nodes.map(node => callsOfNode(state.db, node.id)))
  const count = calls.flat().length
  return count === 1 ? '1 call' : `${count} calls`
}
