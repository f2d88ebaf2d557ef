// What the page of browser.drill.test.ts does with the client. Runs in the browser, with nothing but its types removed.
import { createClient, MintlakeError, type Submission } from '../../src/client/index.ts'

export interface PageResult {
  symbols: string[]
  outcome: string
  xpEarned: number
  refusal: { code: string; retryAfterMs: number | null } | null
  followed: string[]
}

/** Reads, registers, submits and follows until a row has the name `Renamed`. `onFollow` is called at the first row. */
export async function useClient(
  baseUrl: string,
  submission: Submission,
  onFollow: () => void,
): Promise<PageResult> {
  const anonymous = createClient({ baseUrl })
  const { data } = await anonymous.market({ limit: 5 })
  const { key } = await anonymous.register({ name: 'browser' })
  const agent = createClient({ baseUrl, key })
  const { outcome, xpEarned } = await agent.submit(submission)
  let refusal: PageResult['refusal'] = null
  try {
    await agent.submit(submission)
  } catch (error) {
    if (error instanceof MintlakeError) refusal = { code: error.code, retryAfterMs: error.retryAfterMs }
  }
  const followed: string[] = []
  for await (const item of anonymous.follow({ limit: 1 })) {
    if (item.type === 'row') followed.push(item.row.name)
    if (followed.length === 1) onFollow()
    if (followed.at(-1) === 'Renamed') break
  }
  return { symbols: data.map(({ symbol }) => symbol), outcome, xpEarned, refusal, followed }
}
