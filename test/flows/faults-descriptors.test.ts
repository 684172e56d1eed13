import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { openAgent, place } from '../support/agents.ts'
import { prlimit } from '../support/faults.ts'
import t, { type Test } from '../support/harness/index.ts'
import { until } from '../support/wait.ts'
import { webServer } from '../support/web.ts'
import { type ProcessName, world } from '../support/world.ts'

// A process without free file descriptors (threats §7): it refuses what needs one, running calls continue, and it
// recovers when descriptors are free again.

const CALLED = '+2348030004711'

/** Limits the descriptors of a process to `most` while `work` runs. */
async function limited(pid: number, most: number, work: () => Promise<void>): Promise<void> {
  const before = prlimit(pid, '--nofile', '--noheadings', '--raw', '--output', 'SOFT').trim()
  prlimit(pid, `--nofile=${most}:`)
  try {
    await work()
  } finally {
    prlimit(pid, `--nofile=${before}:`)
  }
}

/** With a limit of three, no descriptor is free. */
const without = (pid: number, work: () => Promise<void>): Promise<void> => limited(pid, 3, work)

t.test('without free file descriptors', async t => {
  const w = await world(t, { STROWGER_SANDBOX: 'off', STROWGER_LOG: 'warn' })
  const peer = await openAgent(t, { ip: '127.0.0.81', protocols: ['udp', 'tcp'] })
  const target = await openAgent(t, { ip: '127.0.0.82' })
  await w.addTrunk(peer.ip, {
    targets: [{ sip_uri: `sip:${target.ip}:${target.port}`, transport: 'udp', priority: 1, weight: 1 }],
  })
  const web = await webServer(t, { '/voice': '<Response><Gather timeout="60"/></Response>' })
  const number = w.numbers[2] ?? ''
  await w.routeToApplication(number, `${web.url}/voice`)
  const invite = (called = CALLED, transport: 'udp' | 'tcp' = 'udp') =>
    place(peer, `sip:${called}@${w.sip.host}`, { to: w.sip, caller: w.numbers[1] ?? '', transport })
  const answered = async (...how: Parameters<typeof invite>): Promise<void> => {
    const { call, status } = await invite(...how)
    t.equal(status, 200)
    call.hangUp()
  }
  const { call: running, status } = await invite()
  t.equal(status, 200)
  const goesOn = async (t: Test): Promise<void> => {
    t.equal((await running.send('OPTIONS'))?.status, 200, 'the call that runs is there')
    t.equal(running.state, 'answered')
  }
  /** Opens idle connections to a process until it closes one. */
  const filled = async (pid: number, port: number, work: () => Promise<void>): Promise<void> => {
    const highest = Math.max(...readdirSync(`/proc/${pid}/fd`).map(Number))
    await limited(pid, highest + 8, async () => {
      const sockets = Array.from({ length: highest + 64 }, () => connect(port, w.sip.host))
      try {
        await Promise.race(
          sockets.map(socket => new Promise(resolve => socket.once('close', resolve).on('error', () => undefined))),
        )
        await work()
      } finally {
        for (const socket of sockets) socket.destroy()
      }
    })
  }
  const lives = (name: ProcessName, pid: number): boolean => w.pid(name) === pid

  t.test('media: refuses a new call with the reason, and accepts calls again later', async t => {
    const pid = w.pid('media')
    await without(pid, async () => {
      const { response } = await invite()
      t.equal(response?.status, 503)
      t.match(response?.lines('reason')[0], /text="media_unavailable"/)
      await goesOn(t)
    })
    await answered()
    t.ok(lives('media', pid))
  })

  t.test('control: closes connections while calls continue, and answers again later', async t => {
    const pid = w.pid('control')
    await filled(pid, Number(new URL(w.base_url).port), async () => {
      await answered()
      await goesOn(t)
    })
    await until('it answers', async () => (await fetch(`${w.base_url}/healthz`).catch(() => null))?.ok)
    t.ok(lives('control', pid))
  })

  t.test('signaling: refuses the caller whose document cannot be fetched, and accepts other calls', async t => {
    const pid = w.pid('signaling')
    await without(pid, async () => {
      t.equal((await invite(number)).status, 503)
      await answered()
      await goesOn(t)
    })
    await answered(number)
    t.ok(lives('signaling', pid))
  })

  t.test('edge: accepts calls over UDP but no connection, and TCP again later', async t => {
    const pid = w.pid('edge')
    await filled(pid, w.sip.port, async () => {
      await answered()
      await goesOn(t)
    })
    await until('calls come over TCP', async () => {
      const { call, status } = await invite(CALLED, 'tcp')
      call.hangUp()
      return status === 200
    })
    t.ok(lives('edge', pid))
  })

  t.test('no call, dialog, port or lease remains', async t => {
    running.hangUp()
    await w.untilNone('live_calls', 'edge_dialogs', 'media_legs')
    t.same(await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is', null).execute(), [])
  })
})
