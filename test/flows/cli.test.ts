import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INSTALLATION, listAudit } from '../../core/state/people/audit.ts'
import { type Ended, strowger as run } from '../support/child.ts'
import { runCommand } from '../support/command-line.ts'
import { onEmbedded } from '../support/edges.ts'
import t from '../support/harness/index.ts'
import { until } from '../support/wait.ts'
import { world } from '../support/world.ts'

// The strowger command against a running platform.

t.test('the strowger command', async t => {
  const w = await world(t)
  const folder = mkdtempSync(join(tmpdir(), 'strowger-cli-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const env = { ...w.place, STROWGER_HTTP_PORT: new URL(w.base_url).port }
  /** In a process of its own, as a person starts it: what comes while it runs, exit codes, the start itself. */
  const started = (words: readonly string[]) => run(words, env)
  const strowger = (words: readonly string[]): Promise<Ended> =>
    runCommand(words, { env, state: w.state, user: 'lagos' })
  const elsewhere = (words: readonly string[], data_dir: string): Promise<Ended> =>
    runCommand(words, { env: { ...env, STROWGER_DATA: data_dir } })

  t.test(
    ...onEmbedded('a call is placed and followed, its ladder is drawn, and its script replays the same'),
    async t => {
      const call = started(['call', '+2348030000008', '--markup', '<Response><Pause length="600"/></Response>'])
      const [, sid = ''] = await until('it talks', () => /^(CA[0-9a-f]{32}) {2}in-progress$/m.exec(call.printed()))
      t.equal((await w.voice('POST', `/Calls/${sid}.json`, { Status: 'completed' })).status, 200)
      const placed = await call.ended
      t.equal(placed.code, 0, placed.stderr)
      t.match(placed.stdout, /in-progress\n.*completed\n/)
      await until('the ladder is written to its end', async () => {
        const { stdout } = await strowger(['ladder', sid.slice(0, 12)])
        return /<-+ INVITE[\s\S]*200 INVITE -+>[\s\S]*<-+ BYE/.test(stdout)
      })
      const shown = await until('the call is shown with its leg', async () => {
        const { stdout } = await strowger(['calls', 'show', sid.slice(0, 12)])
        return stdout.includes('leg 1: ') && stdout
      })
      t.match(shown, /^to: \+2348030000008\n/m)
      t.match(shown, /^leg 1: .* \(called\), RTP with PCM[AU], /m)
      t.match(shown, /^price: \d+ s.*, free of charge in the sandbox = .*0\.00$/m)
      const replayed = await strowger(['replay', sid.slice(0, 12)])
      t.equal(replayed.code, 0, replayed.stdout + replayed.stderr)
      t.match((await strowger(['call', '+2348030000002'])).stdout, /busy/)
      const [called] = JSON.parse((await strowger(['calls', 'list', '--limit', '1', '--json'])).stdout)
      t.match(called, { to: '+2348030000002', status: 'busy', project_id: w.project_id })
      t.match(called, { price_minor: 0, price: { amount_minor: 0, sentence: 'not answered = ₦0.00' } })
      const [, sentence = '?'] = /^price: (.*)$/m.exec(shown) ?? []
      t.ok((await strowger(['calls', 'list'])).stdout.includes(`  ${sentence}  `), 'a list has the same sentence')
      for (const words of [['ladder'], ['calls', 'show']])
        t.match(await strowger([...words, 'CA00']), { code: 1, stderr: /there is no call CA00/ })
    },
  )

  t.test('a call whose document fails ends with exit code 1 and the sentence of the error', async t => {
    const { ended } = started(['call', '+2348030004711', '--markup', '<Response><Redirect/></Response>'])
    const { code, stdout, stderr } = await ended
    t.match({ code, stdout }, { code: 1, stdout: /completed/ })
    t.match(stderr, /^strowger: error 11100: .*given inline and has no URL\n$/)
  })

  t.test('a file that is not there, or that cannot be written, is told in a sentence', async t => {
    const missing = join(folder, 'missing.xml')
    const told = async (...words: string[]) => {
      const { code, stdout, stderr } = await strowger(words)
      t.match({ code, stdout }, { code: 1, stdout: '' }, words.join(' '))
      return stderr
    }
    const calls = () => w.state.db.selectFrom('call').select('sid').execute()
    const before = await calls()
    const reads = async (file: string, why: string) =>
      t.equal(await told('call', '+2348030000001', '--file', file), `strowger: ${file} cannot be read: ${why}\n`)
    await reads(missing, 'there is no such file or folder')
    await reads(folder, 'it is a folder')
    t.same(await calls(), before, 'no call is placed')
    t.equal(await told('backup', join(missing, 'x.tar.gz')), `strowger: ${missing}: there is no such file or folder\n`)
    t.match(await told('backup', folder), /^strowger: [^\n]+ exists already\n$/)
    t.match(await told('backup', '/proc/x.tar.gz'), /^strowger: [^\n]+\n/)
  })

  t.test('carriers are added, listed, disabled and removed', async t => {
    const added = await strowger([
      ...['carriers', 'add', 'Lagos Telecom', '--source', '203.0.113.0/24', '--target', 'sip:198.51.100.1'],
      ...['--route', '234:5:120', '--route', 'any', '--codecs', 'pcma,pcmu'],
    ])
    t.equal(added.code, 0, added.stderr)
    const id = added.stdout.trim()
    const listed = JSON.parse((await strowger(['carriers', 'list', '--json'])).stdout)
    t.match(
      listed.find((carrier: { id: string }) => carrier.id === id),
      {
        name: 'Lagos Telecom',
        codecs: ['PCMA', 'PCMU'],
        sources: ['203.0.113.0/24'],
        targets: [{ sip_uri: 'sip:198.51.100.1', transport: 'udp', priority: 1 }],
        routes: [
          { prefix: 'any', priority: 10, cost_minor: 0 },
          { prefix: '+234', priority: 5, cost_minor: 120 },
        ],
      },
    )
    t.equal((await strowger(['carriers', 'drain', id, '--reason', 'maintenance'])).code, 0)
    t.match((await strowger(['carriers', 'list'])).stdout, /Lagos Telecom \(drained\)/)
    t.equal((await strowger(['carriers', 'remove', id])).code, 0)
    t.match(await strowger(['carriers', 'remove', id]), { code: 1, stderr: new RegExp(id) })
    t.match(await strowger(['carriers', 'add', 'x', '--source', 'nowhere']), { code: 1, stderr: /CIDR/ })
  })

  t.test('a wide source waits until an operator approves or refuses it', async t => {
    const id = (await w.addDigestTrunk({ name: 'Wide', sources: ['10.96.0.0/16', '10.97.0.0/16'] })).id
    const told = async (): Promise<{ id: string; cidr: string; standing: string }[]> =>
      (await w.manage('GET', `/trunks/${id}`)).body.authentication.sources
    const [first, second] = await told()
    t.same([first?.standing, second?.standing], ['pending_approval', 'pending_approval'])
    const listed = JSON.parse((await strowger(['sources', '--json'])).stdout)
    t.match(listed, [{ id: first?.id, cidr: first?.cidr, trunk_name: 'Wide' }, { id: second?.id }])
    t.match(await strowger(['sources', 'approve', first?.id ?? '']), { code: 0, stdout: `${second?.cidr}` })
    t.match(await strowger(['sources', 'refuse', second?.id ?? '']), { code: 0, stdout: /every source counts/ })
    t.match(await told(), [{ cidr: first?.cidr, standing: 'full' }])
    t.equal((await told()).length, 1)
    t.match(await strowger(['sources', 'approve', first?.id ?? '']), { code: 1, stderr: /does not wait/ })
    const { body } = await w.manage('GET', '/audit?range=all&limit=2')
    t.match(
      body.data.map((event: { action: string }) => event.action),
      ['source.refused', 'source.approved'],
    )
  })

  t.test('operators see whose address a source overlaps', async t => {
    const wanted = { name: 'Ikeja', configuration: { currency: 'NGN' } }
    const key = { 'idempotency-key': 'a branch of its own' }
    const { status, body: subaccount } = await w.manage('POST', '/subaccounts', wanted, key)
    t.equal(status, 201)
    await w.addTrunk('192.0.2.7', { name: 'First' })
    await w.addTrunk('192.0.2.7', { name: 'Second', sources: ['192.0.2.0/24'], subaccount_id: subaccount.id })
    const { stdout } = await strowger(['sources'])
    t.match(
      stdout,
      /name_only +192\.0\.2\.0\/24 +Second, prj_\S+, sub\S+\n {2}overlaps 192\.0\.2\.7\/32 of First, prj_/,
    )
  })

  t.test('a file of carriers is shown as a difference, and applied with --yes', async t => {
    const file = join(folder, 'carriers.json')
    const routes = [{ prefix: '234', cost_minor: 90 }]
    const carriers = [{ name: 'Ibadan Link', sources: [], targets: [{ sip_uri: 'sip:198.51.100.7' }], routes }]
    writeFileSync(file, JSON.stringify({ carriers }))
    const named = () => w.state.db.selectFrom('carrier').select('id').where('name', '=', 'Ibadan Link').execute()
    const shown = await strowger(['carriers', 'apply', file])
    t.match(shown, {
      code: 0,
      stdout: /^\+ carrier Ibadan Link[\s\S]*\+ to sip:198.51.100.7 udp[\s\S]*nothing was changed/,
    })
    t.same(await named(), [])
    t.match(await strowger(['carriers', 'apply', file, '--yes']), { code: 0, stdout: /^\+ carrier Ibadan Link/ })
    t.equal((await named()).length, 1)
  })

  t.test('a rate list is imported as a whole, or refused with every invalid line', async t => {
    const books = () => w.state.db.selectFrom('price_book').select('id').execute()
    const shown = await strowger(['rates', 'import', 'fixtures/rates/standard.csv', '--dry-run'])
    t.match(shown, { code: 0, stdout: /^against no prices:\n[+] [+]1 United States[^\n]*₦12.00\/min, 60\/60\n/ })
    t.match(shown.stdout, /\n[+] [+]234803 Nigeria, mobile [(]MTN[)]: ₦0.115\/s, 1\/1\n/)
    t.match(shown.stdout, /\n5 added, 0 changed, 0 ended, 0 as they were\n$/)
    t.same(await books(), [], 'a dry run imports nothing')
    const good = await strowger(['rates', 'import', 'fixtures/rates/standard.csv'])
    t.match(good, { code: 0, stdout: /5 added[^\n]*\npbk_[^:]*: 5 rates/ }, good.stderr)
    t.match(await strowger(['rates', 'import', 'fixtures/rates/standard.csv', '--yes']), { stdout: /nothing changes/ })
    const dearer = join(folder, 'dearer.csv')
    writeFileSync(
      dearer,
      'prefix,label,rate,unit,initial,additional\n234,Nigeria,950,minute,1,1\n39,Italy,7,minute,1,1\n',
    )
    const { stdout } = await strowger(['rates', 'import', dearer, '--dry-run'])
    t.match(stdout, /~ [+]234 Nigeria: ₦9.00\/min, 1\/1 to ₦9.50\/min, 1\/1\n[+] [+]39 Italy/)
    t.match(stdout, /\n1 added, 1 changed, 4 ended, 0 as they were\n$/)
    const wrong_unit = join(folder, 'wrong-unit.csv')
    writeFileSync(wrong_unit, 'prefix,label,rate,unit,initial,additional\n234,Nigeria,90000,minute,1,1\n')
    const leap = await strowger(['rates', 'import', wrong_unit])
    t.match(leap, {
      code: 1,
      stdout: /\n! tenfold or more: [+]234 Nigeria: ₦9.00\/min to ₦900.00\/min\n/,
      stderr: /price_leap/,
    })
    t.equal((await books()).length, 1, 'a price that moves tenfold is not imported unless it is confirmed')
    t.match(await strowger(['rates', 'import', wrong_unit, '--confirm', '--from', '2099-01-01']), { code: 0 })
    const [{ id: kept } = { id: '' }] = (await books()).filter(({ id }) => good.stdout.includes(id))
    const exported = await strowger(['rates', 'export', kept])
    t.match(
      exported.stdout,
      /^prefix,label,rate,unit,initial,additional\n[\s\S]*\n234803,"?Nigeria, mobile [(]MTN[)]"?,11.5,second,1,1\n/,
    )
    const bad = await strowger(['rates', 'import', 'fixtures/rates/broken.csv'])
    t.equal(bad.code, 1)
    for (const line of [3, 4, 5, 6, 7, 8]) t.match(bad.stderr, new RegExp(`^fixtures/rates/broken.csv:${line}: `, 'm'))
    t.equal((await books()).length, 2)
    t.match(await strowger(['rates', 'import', 'nothing.csv']), { code: 1, stderr: /nothing.csv cannot be read/ })
  })

  t.test('customers, money and numbers: the CLI does what /operator/v1 does, as the Unix user', async t => {
    const answer = async (...args: string[]) => {
      const { code, stdout, stderr } = await strowger([...args, '--json'])
      t.equal(code, 0, `${args.join(' ')}: ${stderr}`)
      return stdout === '' ? undefined : JSON.parse(stdout)
    }
    const ceilings = ['--concurrency', '7', '--velocity', '0']
    t.match(await answer('project', 'ceilings', w.project_id, ...ceilings), {
      ceilings: { concurrency: 7, velocity_cap_minor: 0, cps: null },
    })
    const none = ['--concurrency', 'none', '--velocity', 'none']
    t.match(await answer('project', 'ceilings', w.project_id, ...none), {
      ceilings: { concurrency: null, velocity_cap_minor: null },
    })
    t.match(await strowger(['project', 'show', 'prj_x']), { code: 1, stderr: /no customer prj_x|not_found/ })
    await answer('project', 'set', w.project_id, '--payment', 'prepaid')
    t.match(await answer('balance', 'top-up', w.project_id, '5000', '--reason', 'first', '--reference', 'B-1'), {
      balance_minor: 5000,
      available_minor: 5000,
    })
    t.match(await answer('balance', 'ledger', w.project_id), [{ kind: 'top_up', reason: 'first', reference: 'B-1' }])
    await answer('balance', 'correct', w.project_id, '-5000', '--reason', 'only a test')
    await answer('project', 'set', w.project_id, '--payment', 'postpaid')

    const made = await answer('org', 'create', 'Rival', '--email', 'r@rival.example', '--time-zone', 'Europe/London')
    const rival = made.project.id as string
    const names = (await answer('org', 'list')).map((row: { name: string }) => row.name)
    t.same(names.sort(), ['Demo', 'Rival'])
    t.match(await answer('numbers', 'add', '+2342015550000', '+2342015550004'), { added: 5 })
    t.match(await answer('numbers', 'assign', '+2342015550002', rival), { status: 'held', project_id: rival })
    t.match(await strowger(['numbers', 'assign', '+2342015550009', rival]), { code: 1, stderr: /no number/ })
    t.match(await answer('project', 'checklist', rival), { open: ['balance'], numbers: 1, price_books: 1 })
    t.match(await strowger(['project', 'go-live', rival, '--reason', 'now']), { code: 1, stderr: /checklist_open/ })
    const listed = (await strowger(['numbers', 'list', '--project', rival.slice(0, 12)])).stdout
    t.match(listed, /^ID .*E164 .*STATUS.*\n.*[+]2342015550002 +held/, 'the first characters of an id are enough')
    t.match(await strowger(['call', '+2348030000002', '--project', rival.slice(0, 12)]), { stdout: /busy/ })

    const { operator_key } = await answer('operator', 'key', 'create', 'Desk', '--scopes', 'operator:read')
    const read = (key: string) =>
      fetch(`${w.base_url}/operator/v1/projects/${rival}`, { headers: { Authorization: `Bearer ${key}` } })
    t.equal((await read(operator_key)).status, 200)
    const [{ id }] = await answer('operator', 'key', 'list')
    await answer('operator', 'key', 'revoke', id)
    t.equal((await read(operator_key)).status, 401)
    const trail = await listAudit(w.state.db, INSTALLATION, {}, { limit: 100 })
    // The first start made a key for the person who started it.
    const ours = trail.filter(event => event.action !== 'api_key.created')
    t.ok(ours.every(event => event.actor_type === 'operator' && event.actor_name === 'lagos'))
    t.equal(trail.filter(event => event.action === 'balance.corrected').length, 1)
  })

  t.test('limits: lists holders of a slot, and corrects counters', async t => {
    const lease = await w.state.db.selectFrom('lease').selectAll().where('ended_at', 'is not', null).executeTakeFirst()
    if (!lease) throw new Error('no call has held a slot')
    const holders = async (at: string) =>
      (await strowger(['limits', 'holders', 'project', w.project_id, '--at', at])).stdout
    t.match(await holders(lease.begun_at), lease.call_sid)
    t.notMatch(await holders(new Date(Date.parse(lease.begun_at) - 1).toISOString()), lease.call_sid)
    t.match(await strowger(['limits', 'holders', 'sofa', 'x']), { code: 1, stderr: /Allowed choices are/ })

    t.match((await strowger(['doctor'])).stdout, /^ok +calls, slots, money and owners agree/m)
    await w.state.db.updateTable('level_use').set({ live: 3 }).where('level', '=', 'project').execute()
    t.match((await strowger(['doctor'])).stdout, /^MEND +calls, slots.*strowger limits recount/m)
    t.match((await strowger(['limits', 'recount'])).stdout, /^project prj_\S+ said 3, holds 0$/m)
    t.match((await strowger(['limits', 'recount'])).stdout, /every counter was correct/)
  })

  t.test('export writes the calls of all customers, and leaves no job behind', async t => {
    const file = join(folder, 'calls.jsonl')
    const { code, stderr } = await strowger(['export', '--format', 'jsonl', '--out', file])
    t.equal(code, 0, stderr)
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const ended = await w.state.db.selectFrom('call').select('sid').where('ended_at', 'is not', null).execute()
    t.ok(ended.length > 0)
    t.same(lines.map(line => JSON.parse(line).id).sort(), ended.map(({ sid }) => sid).sort())
    const { stdout } = await strowger(['export', '--status', 'busy'])
    t.match(stdout, /^id,account_sid,.*\r\n/)
    t.same(await w.state.db.selectFrom('call_export').select('id').where('state', '!=', 'deleted').execute(), [])
    const wrong = await strowger(['export', '--since', 'yesterday'])
    t.match(wrong, { code: 1, stderr: /date-time/ })
  })

  t.test('a backup of the running platform is restored elsewhere with its keys and accounts', async t => {
    const archive = join(folder, 'backup.tar.gz')
    t.equal((await strowger(['backup', archive])).code, 0)
    t.match(await strowger(['backup', archive]), { code: 1, stderr: /exists already/ })
    t.match(await strowger(['restore', archive]), { code: 1, stderr: /the platform runs/ })
    const there = join(folder, 'data')
    const restored = await elsewhere(['restore', archive], there)
    t.equal(restored.code, 0, restored.stderr)
    const made = JSON.parse((await started(['--data', there, 'bootstrap', '--json']).ended).stdout)
    t.match(made, { account_sid: w.account_sid, auth_token: w.auth_token, project_id: w.project_id })
    t.match(await elsewhere(['restore', archive], there), { code: 1, stderr: /--replace/ })
    t.equal((await elsewhere(['restore', archive, '--replace'], there)).code, 0)
    const wrong = await elsewhere(['restore', 'package.json'], join(folder, 'other'))
    t.match(wrong, { code: 1, stderr: /is not a backup of Strowger/ })
    t.notOk(existsSync(join(folder, 'other', 'strowger.sqlite')))
  })

  t.test('an unknown command ends with exit code 1, and bash completes the known ones', async t => {
    t.match(await started(['fly']).ended, { code: 1, stderr: /unknown command 'fly'[\s\S]*Usage: strowger/ })
    const completed = 'COMP_WORDS=(strowger members lo); COMP_CWORD=2; _strowger; echo "$COMPREPLY"'
    const { stdout: script } = await strowger(['completion'])
    t.equal(execFileSync('bash', ['-c', `${script}\n${completed}`], { encoding: 'utf8' }), 'lock\n')
  })
})
