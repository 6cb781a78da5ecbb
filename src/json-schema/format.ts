import { isIP } from 'node:net'

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/
const TIME = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|[+-](\d\d):(\d\d))$/i
const LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i

/**
 * The formats that are checked; others say what a text is for and are not. Each takes time in proportion to the text.
 */
const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: isTime,
  'date-time': (text) => {
    const [date = '', time = '', ...rest] = text.split(/[t ]/i)
    return rest.length === 0 && isDate(date) && isTime(time)
  },
  duration: (text) =>
    text.length < 100 &&
    /^P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/.test(text),
  email: (text) => {
    const at = text.lastIndexOf('@')
    return at > 0 && at <= 64 && !/[\s<>()[\]\\,;:]/.test(text.slice(0, at)) && isHost(text.slice(at + 1))
  },
  hostname: isHost,
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6 && !text.includes('%'),
  uri: (text) => /^[a-z][a-z\d+.-]*:[^\s"<>\\^`{|}]*$/i.test(text) && URL.canParse(text),
  uuid: (text) => /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(text),
  regex: (text) => {
    try {
      return typeof new RegExp(text, 'u').source === 'string'
    } catch {
      return false
    }
  },
  'json-pointer': (text) => /^(?:\/(?:[^~/]|~[01])*)*$/.test(text),
}

/** Whether a text has a format; true for one that is not known. */
export function hasFormat(format: string, text: string): boolean {
  return !Object.hasOwn(FORMATS, format) || (FORMATS[format]?.(text) ?? true)
}

function isDate(text: string): boolean {
  const [, year, month, day] = DATE.exec(text)?.map(Number) ?? []
  if (year === undefined || month === undefined || day === undefined) return false
  // Day 0 of the next month is the last one of this.
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

function isTime(text: string): boolean {
  const [, hour = 99, minute = 99, second = 99, aheadHours = 0, aheadMinutes = 0] = (TIME.exec(text) ?? []).map(
    (part) => (part === undefined ? 0 : Number(part)),
  )
  return hour <= 23 && minute <= 59 && second <= 60 && aheadHours <= 23 && aheadMinutes <= 59
}

function isHost(text: string): boolean {
  return text.length > 0 && text.length <= 253 && text.split('.').every((label) => LABEL.test(label))
}
