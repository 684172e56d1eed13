import { AsyncLocalStorage } from 'node:async_hooks'
import { connectBus, type Topic } from '../core/runtime/bus.ts'
import { iso } from '../core/runtime/clock.ts'
import type { Config } from '../core/runtime/config.ts'
import { openState, type State } from '../core/state/index.ts'
import { refuseForeignKey } from '../core/state/maintenance/key-proof.ts'
import { presentConfig } from './installation.ts'

const opened = new AsyncLocalStorage<State>()

/** Runs commands on a state that is open already, and stays so. */
export const onState = <T>(state: State, work: () => Promise<T>): Promise<T> => opened.run(state, work)

/** Runs a command on the state of this installation. The platform may be running or stopped. */
export async function withState<T>(work: (state: State, config: Config) => Promise<T>): Promise<T> {
  const config = presentConfig()
  const given = opened.getStore()
  if (given) return work(given, config)
  const state = await openState({ ...config, here: true })
  try {
    await refuseForeignKey(state, config.master_key, iso(Date.now()))
    return await work(state, config)
  } finally {
    await state.close()
  }
}

/** Wakes the listeners of the running platform, if any, because rows changed. */
export async function ring(config: Config, topic: Topic): Promise<void> {
  const bus = connectBus(config.run_dir)
  bus.ring(topic)
  await bus.close()
}
