import type { Caller } from '../../../../control/http/caller.ts'
import { Listeners } from '../../../../control/live/listeners.ts'
import { systemClock } from '../../../../core/runtime/clock.ts'
import t from '../../../support/harness/index.ts'

const caller = { id: 'mem_1' } as Caller

t.test(
  'a call and a project have a limit of listeners each, so that one customer leaves room for its rival',
  async t => {
    const listeners = new Listeners(systemClock)
    t.teardown(() => listeners.endAll())
    const make = (project_id: string, call: number) =>
      listeners.make({ project_id, call_sid: `CA${project_id}${call}`, caller })
    for (let made = 0; made < 20; made++) t.type(make('prj_a', made >> 2), 'string')
    t.same(make('prj_b', 0) && make('prj_a', 9), { of: 'project prj_a', limit: 20 })
    for (let made = 1; made < 4; made++) t.type(make('prj_b', 0), 'string')
    t.same(make('prj_b', 0), { of: 'call CAprj_b0', limit: 4 })
    t.type(make('prj_b', 1), 'string', 'the rival goes on')
  },
)
