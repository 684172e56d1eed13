import { escapeXml } from '../../core/domain/text/xml.ts'

/** Returns a document that speaks `text`, `times` times. */
export const spoken = (text: string, times = 1): string =>
  `<Response><Say${times === 1 ? '' : ` loop="${times}"`}>${escapeXml(text)}</Say></Response>`
