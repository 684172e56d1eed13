import { createServer } from 'node:net'
import { emailChannel, smtpSettings } from '../../../../control/alerts/channels.ts'
import t, { type Test } from '../../../support/harness/index.ts'

interface MailServer {
  readonly port: number
  readonly commands: readonly string[]
  /** The lines of all messages. */
  readonly lines: readonly string[]
}

/** Starts a mail server that accepts everything. */
async function mailServer(t: Test): Promise<MailServer> {
  const lines: string[] = []
  const commands: string[] = []
  const server = createServer(socket => {
    let in_data = false
    let rest = ''
    socket.write('220 mail\r\n')
    socket.on('data', bytes => {
      const parts = `${rest}${bytes}`.split('\r\n')
      rest = parts.pop() ?? ''
      for (const line of parts) {
        const said = in_data ? lines : commands
        said.push(line)
        if (in_data && line !== '.') continue
        in_data = line === 'DATA'
        socket.write(in_data ? '354 go on\r\n' : line.startsWith('EHLO') ? '250 mail\r\n' : '250 yes\r\n')
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const bound = server.address()
  return { port: typeof bound === 'object' && bound ? bound.port : 0, commands, lines }
}

t.test('a trunk name with line breaks injects no header, recipient or SMTP command', async t => {
  const { port, commands, lines } = await mailServer(t)
  const channel = emailChannel(smtpSettings(`smtp://127.0.0.1:${port}`, 'alerts@strowger.example'))
  t.teardown(() => channel.close())
  const name = 'Lagos\r\nBcc: thief@rival.example\r\n\r\n.\r\nMAIL FROM:<thief@rival.example>\r\nDATA'
  const send = (recipient: string) =>
    channel.send({ project_id: 'prj_1', recipient, subject: `Trunk ${name}`, body: `Trunk ${name}`, id: 'ntf_1' })
  await send('ops@customer.example')
  const asked = commands.filter(line => !/^(EHLO|QUIT)/.test(line))
  t.same(asked, ['MAIL FROM:<alerts@strowger.example>', 'RCPT TO:<ops@customer.example>', 'DATA'])
  const head = lines.slice(0, lines.indexOf(''))
  const headers = head.filter(line => !/^\s/.test(line)).map(line => line.split(':')[0]?.toLowerCase())
  t.equal(headers.filter(header => header === 'subject').length, 1)
  t.notOk(headers.includes('bcc'))

  await send('ops@customer.example, thief@rival.example').catch(() => undefined)
  const recipients = commands.filter(line => line.startsWith('RCPT')).slice(1)
  t.ok(recipients.length <= 1, `a comma adds no second recipient: ${recipients.join()}`)
})
