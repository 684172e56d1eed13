import type { Prompts } from '../../../../media/files/prompts.ts'
import { Player } from '../../../../media/session/player.ts'
import type { PlayPiece, Stream } from '../../../../native/index.ts'
import t from '../../../support/harness/index.ts'

t.test('speech by another voice than the named one is played, and told', async t => {
  const played: PlayPiece[] = []
  const stream = {
    closed: false,
    play({ play_id, pieces }: { play_id: string; pieces: readonly PlayPiece[] }) {
      played.push(...pieces)
      queueMicrotask(() =>
        player.pieceEnded({ type: 'play_ended', play_id, reason: 'finished', played_ms: 20 } as never),
      )
    },
  } as unknown as Stream
  const loaded = { pieces: [{ kind: 'silence', ms: 20 }], endless: false, warning: 'the default speaks' } as const
  const prompts: Prompts = { load: () => Promise.resolve(loaded) }
  const ended: object[] = []
  const player = new Player(stream, prompts, 'project', end => ended.push(end))
  const source = { kind: 'speech', text: 'Hello', voice: 'unknown', language: 'en-US' } as const
  player.start({ play_id: 'say', sources: [source], loop: 1 }, 8000)
  await new Promise(setImmediate)
  t.equal(played.length, 1)
  const failures = [{ index: 0, reason: 'voice_unknown', detail: 'the default speaks' }]
  t.same(ended, [{ play_id: 'say', reason: 'finished', failures }])
})
