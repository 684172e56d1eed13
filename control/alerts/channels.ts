/** Channels that send messages to people. Each is a port, so that a site can bring its own. */

interface Message {
  readonly project_id: string
  readonly recipient: string
  readonly subject: string
  readonly body: string
  /** The same for all attempts. */
  readonly id: string
}

/** A way to send messages. `send` throws when it fails. */
export interface MessageChannel {
  send(message: Message): Promise<void>
  close(): void
}

interface SmtpSettings {
  readonly host: string
  readonly port: number
  /** True: TLS from the first byte. False: STARTTLS if the server offers it. */
  readonly secure: boolean
  readonly username: string | null
  readonly password: string | null
  readonly from: string
}

/** Parses `smtp://user:password@host:587` or `smtps://host`. @throws TypeError for any other URL */
export function smtpSettings(url: string, from: string): SmtpSettings {
  const { protocol, hostname, port, username, password } = new URL(url)
  const secure = protocol === 'smtps:'
  if (!secure && protocol !== 'smtp:') throw new TypeError(`${protocol} is not smtp: or smtps:`)
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (secure ? 465 : 587) : Number(port),
    secure,
    username: username === '' ? null : decodeURIComponent(username),
    password: password === '' ? null : decodeURIComponent(password),
    from,
  }
}

const SMTP_LIMIT_MS = 15_000

/** Sends e-mail over SMTP. The library is loaded with the first message, because most installations never send one. */
export function emailChannel(settings: SmtpSettings): MessageChannel {
  let transport: Promise<{ sendMail(mail: object): Promise<unknown>; close(): void }> | null = null
  const open = () =>
    import('nodemailer').then(({ createTransport }) =>
      createTransport({
        host: settings.host,
        port: settings.port,
        secure: settings.secure,
        ...(settings.username === null ? {} : { auth: { user: settings.username, pass: settings.password ?? '' } }),
        connectionTimeout: SMTP_LIMIT_MS,
        greetingTimeout: SMTP_LIMIT_MS,
        socketTimeout: SMTP_LIMIT_MS,
        // A message is only text: nodemailer must not read files or URLs named in it.
        disableFileAccess: true,
        disableUrlAccess: true,
      }),
    )
  return {
    async send({ recipient, subject, body, id }) {
      transport ??= open()
      const domain = settings.from.split('@')[1]?.replace(/[^A-Za-z0-9.-]/g, '') || 'strowger.local'
      await (await transport).sendMail({
        from: settings.from,
        // As an object, the address is not parsed: it cannot name more than one recipient.
        to: { name: '', address: recipient },
        subject,
        text: body,
        messageId: `<${id}@${domain}>`,
        headers: { 'Auto-Submitted': 'auto-generated' },
      })
    },
    close() {
      void transport?.then(open => open.close())
    },
  }
}
