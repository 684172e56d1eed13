import type { Command, PlayItem } from '../../markup/interpreter/types.ts'

/** Formats a command for a person; null for commands without visible effect (timers, listening). */
export function printed(command: Command): string | null {
  switch (command.type) {
    case 'play':
      return command.items.map(item).join('\n')
    case 'fetch':
      return `-> ${command.method} ${withoutPassword(command.url)}${form(command.parameters)}`
    case 'callback':
      return `-> ${command.method} ${withoutPassword(command.url)}${form(command.parameters)}  (its reply is ignored)`
    case 'note': {
      const place = command.line === null ? '' : `${command.line}:${command.column} `
      return `!  ${command.level} ${command.number}  ${place}${command.detail}`
    }
    case 'start_timer':
      return command.ms >= 1000 && command.ms <= 60_000 ? `   (waits up to ${command.ms / 1000} s)` : null
    case 'record':
      return `   records up to ${command.max_seconds} s`
    case 'dial_child':
      return `   dials ${destination(command)} as ${command.caller_id}`
    case 'send_digits':
      return `   types ${command.digits}`
    case 'enqueue':
      return `   waits in queue "${command.name}"`
    case 'dequeue':
      return `   takes the next caller of queue "${command.name}"`
    case 'join_conference':
      return `   joins conference "${command.name}"`
    case 'refer':
      return `   transfers to ${command.uri}`
    case 'start_stream':
      return `   streams to ${command.url}`
    case 'reject':
      return `   refuses the call with ${command.sip_code}`
    case 'done':
      return `   the script is over: ${command.outcome}`
    case 'cancel_timer':
    case 'digits_on':
    case 'digits_off':
    case 'stop_play':
    case 'stop_ring':
      return null
    default:
      return `   ${command.type.replaceAll('_', ' ')}`
  }
}

function item(item: PlayItem): string {
  if (item.kind === 'silence') return `   (silence of ${item.ms / 1000} s)`
  const times = item.loop > 1 ? `  (${item.loop} times)` : ''
  return item.kind === 'url' ? `~  ${item.url}${times}` : `"  ${item.text}${times}`
}

function destination({ target }: Extract<Command, { type: 'dial_child' }>): string {
  switch (target.kind) {
    case 'number':
      return target.number
    case 'sip':
      return target.uris[0]?.uri ?? 'sip:'
    case 'client':
      return `client:${target.identity}`
    case 'application':
      return `application ${target.id}`
  }
}

function form(parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`)
  return pairs.length === 0 ? '' : `  ${pairs.join(' ')}`
}

function withoutPassword(url: string): string {
  return url.replace(/^(https?:\/\/)[^/?#@]*@/i, '$1')
}
