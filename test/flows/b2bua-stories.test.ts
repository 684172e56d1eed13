import t from 'tap'
import { DIALOG } from '../support/b2bua-stories/dialog.ts'
import { ENDING } from '../support/b2bua-stories/ending.ts'
import { HEADERS } from '../support/b2bua-stories/headers.ts'
import { SETUP } from '../support/b2bua-stories/setup.ts'
import { play } from '../support/b2bua-stories/story.ts'
import { nothingLeft } from '../support/b2bua-world.ts'
import { world } from '../support/world.ts'

t.test('stories of the B2BUA', async t => {
  const w = await world(t, { STROWGER_SANDBOX: 'off' })
  await t.test('each over its transports', { jobs: 6 }, async t => {
    // The longest come first.
    for (const story of [...ENDING, ...SETUP, ...DIALOG, ...HEADERS])
      for (const transport of story.only ? [story.only] : (['udp', 'tcp'] as const))
        void t.test(`${story.title} (${transport})`, { buffered: true }, t => play(t, w, story, transport))
  })
  await t.test('afterwards nothing is left', t => nothingLeft(t, w))
})
