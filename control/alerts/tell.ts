import { type AlertSeverity, isSentTo, quietFor } from '../../core/domain/alerts/index.ts'
import { iso } from '../../core/runtime/clock.ts'
import { clockOf } from '../../core/state/alerts/alert-facts.ts'
import { alertSettings } from '../../core/state/alerts/alert-policies.ts'
import { type AlertRow, insertNotification } from '../../core/state/alerts/alerts.ts'
import { queueEvent } from '../../core/state/delivery/webhook-endpoints.ts'
import type { Trx } from '../../core/state/index.ts'
import { listMembers } from '../../core/state/people/organizations.ts'
import { presentAlert } from '../v1/alert-present.ts'

/** The context of the messages about an alert. */
export interface TellContext {
  readonly time_zone: string
  readonly now_ms: number
  readonly base_url: string
}

/**
 * Queues the messages about an alert for its channels, in the transaction that writes the alert. The channel `in_app`
 * needs no message: it is the alert's row.
 */
export async function tellAlert(
  trx: Trx,
  alert: AlertRow,
  event: 'alert.fired' | 'alert.resolved',
  { time_zone, now_ms, base_url }: TellContext,
): Promise<void> {
  const channels = JSON.parse(alert.channels) as string[]
  if (channels.includes('webhook'))
    await queueEvent(trx, { project_id: alert.project_id, kind: event, data: presentAlert(alert) }, now_ms)
  if (!channels.includes('email') && !channels.includes('sms')) return
  const settings = await alertSettings(trx, alert.project_id)
  const quietAt = (ms: number) => quietFor(alert.severity as AlertSeverity, settings, clockOf(ms, time_zone))
  const waited_ms = now_ms + quietAt(now_ms)
  const message = {
    project_id: alert.project_id,
    alert_id: alert.id,
    event,
    // Clocks that go back meanwhile put the end of quiet off.
    next_attempt_at: iso(waited_ms + quietAt(waited_ms)),
  }
  const emails = channels.includes('email') ? await emailRecipients(trx, alert, settings.email_recipients) : []
  for (const recipient of emails)
    await insertNotification(
      trx,
      {
        ...message,
        channel: 'email',
        recipient,
        subject: subjectOf(alert, event),
        body: textOf(alert, event, base_url),
      },
      iso(now_ms),
    )
  const numbers = channels.includes('sms') ? (JSON.parse(settings.sms_recipients) as string[]) : []
  for (const recipient of numbers)
    await insertNotification(
      trx,
      { ...message, channel: 'sms', recipient, subject: subjectOf(alert, event), body: shortOf(alert, event) },
      iso(now_ms),
    )
}

async function emailRecipients(trx: Trx, alert: AlertRow, set: string | null): Promise<readonly string[]> {
  if (set !== null) return JSON.parse(set) as string[]
  const members = await listMembers(trx, alert.organization_id)
  return members.filter(member => isSentTo(alert.kind, member.role)).map(row => row.email)
}

const MARK = { 'alert.fired': '', 'alert.resolved': 'Resolved: ' } as const

const subjectOf = (alert: AlertRow, event: keyof typeof MARK): string =>
  oneLine(`[Strowger ${alert.severity}] ${MARK[event]}${alert.reason}`, 180)

const shortOf = (alert: AlertRow, event: keyof typeof MARK): string =>
  oneLine(`Strowger ${alert.severity}: ${MARK[event]}${alert.reason}`, 300)

/** Removes line breaks. Users choose the names of trunks, and a line break in one could inject a header. */
const oneLine = (text: string, limit: number): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, limit)

function textOf(alert: AlertRow, event: keyof typeof MARK, base_url: string): string {
  const { evidence, suggested_actions } = presentAlert(alert)
  const lines = evidence.map(item => {
    const money = item.amount_minor === null ? null : `${item.currency ?? ''} ${(item.amount_minor / 100).toFixed(2)}`
    return `  ${item.label}: ${[item.text, money, item.note].filter(part => part !== null).join(', ')}`
  })
  return [
    alert.reason,
    '',
    ...(event === 'alert.resolved' ? [`Resolved at ${alert.resolved_at}: ${alert.resolved_why}.`, ''] : []),
    ...lines,
    '',
    `What to do: ${alert.remediation}`,
    ...suggested_actions.map(action => `  ${action.label}: ${base_url}${action.href}`),
    '',
    `Alert ${alert.id}, ${alert.kind}, fired at ${alert.fired_at}.`,
    '',
  ].join('\n')
}
