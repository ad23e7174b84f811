// Reads events in the kept output of a session. A program in the sandbox printed them: they may be anything.

type Event = Record<string, unknown>

const CONVERSATION = /^[A-Za-z0-9-]{1,128}$/

/** Without lines that are not events: the first may be cut, and stderr may stand between them. */
export function* eventsIn(lines: Iterable<string>): Generator<Event> {
  for (const line of lines) {
    if (!line.startsWith('{')) continue
    try {
      yield JSON.parse(line)
    } catch {}
  }
}

/** The conversation that the last event with one names. */
export function conversationIn(output: string): string | undefined {
  for (const { claude_session_id: ours, session_id: theirs } of eventsIn(output.split('\n').reverse())) {
    const id = ours ?? theirs
    if (typeof id === 'string' && CONVERSATION.test(id)) return id
  }
}
