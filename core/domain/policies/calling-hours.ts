/** The hours in which a policy lets outbound calls begin. */

export const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const
type Weekday = (typeof WEEKDAYS)[number]

/** On each of these days, from a time (included) to another (not included); one that ends earlier ends the next day. */
export interface CallingWindow {
  readonly days: readonly Weekday[]
  /** `HH:MM`, from 00:00. */
  readonly from: string
  /** `HH:MM`, up to 24:00. */
  readonly to: string
}

/** A moment as clocks of a place show it. */
interface LocalTime {
  readonly weekday: Weekday
  /** Minutes since midnight. */
  readonly minute: number
}

/** Reports whether a moment lies in one of the windows. */
export const isWithin = (windows: readonly CallingWindow[], { weekday, minute }: LocalTime): boolean =>
  windows.some(({ days, from, to }) => {
    const [begin, end] = [minuteOf(from), minuteOf(to)]
    if (begin < end) return days.includes(weekday) && minute >= begin && minute < end
    if (minute >= begin) return days.includes(weekday)
    return minute < end && days.includes(dayBefore(weekday))
  })

/** Writes a moment for people: `Sunday 03:12`. */
export function localTimeText({ weekday, minute }: LocalTime): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = `${weekday.charAt(0).toUpperCase()}${weekday.slice(1)}`
  return `${day} ${two(Math.floor(minute / 60))}:${two(minute % 60)}`
}

const minuteOf = (time: string): number => {
  const [hours = '0', minutes = '0'] = time.split(':')
  return Number(hours) * 60 + Number(minutes)
}

const dayBefore = (day: Weekday): Weekday => WEEKDAYS[(WEEKDAYS.indexOf(day) + 6) % 7] ?? day

const formatters = new Map<string, Intl.DateTimeFormat>()

/** Returns what clocks in a time zone show. */
export function localTimeOf(epoch_ms: number, time_zone: string): LocalTime {
  let formatter = formatters.get(time_zone)
  if (!formatter) {
    const shown = { weekday: 'long', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
    formatter = new Intl.DateTimeFormat('en-GB', { timeZone: time_zone, ...shown })
    formatters.set(time_zone, formatter)
  }
  const parts = new Map(formatter.formatToParts(epoch_ms).map(({ type, value }) => [type, value]))
  const name = parts.get('weekday')?.toLowerCase()
  const weekday = WEEKDAYS.find(day => day === name) ?? 'monday'
  return { weekday, minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')) }
}
