const TALLY =
  '{"input":0,"cachedInput":0,"cacheWrite":0,"output":0,"reasoning":0,"total":0,"basis":"provider","calls":1,"cost":0,"unpriced":1}'

/*
 * What small bodies are packed with: the names and frames of our own records, which would otherwise be most of every
 * one of them. The commonest come last, where they are cheapest to point to.
 *
 * Frozen: every body packed with a dictionary needs exactly its bytes to be read, for ever. A better one gets a new name.
 */

/** Of `d1`, from before steps were recorded by what they changed. */
export const DICTIONARY_1: Uint8Array = Buffer.from(
  [
    ' the and of to in is that you for it with your are was this have can not will be on as from or we has been would',
    ' there which please any more about when our ',
    // Waits, pauses, failures, effects that are not done.
    '{"status":"waiting","until":1["set",["run","waiting"],[{"kind":"sleep","step":"',
    '[["set",["pauses","p-"],{"id":"p-","path":"","kind":"question","question":{"type":"object","properties":{"approved"',
    ':{"type":"boolean"}},"required":["askedAt":1"index":{"status":"waiting_human","wakeAt":null},',
    '"data":{"events":[{"type":"pause","pause":"p-","kind":"approval"',
    '"status":"failed","error":{"name":"StepFailedError","message":"Step \\"","code":"step-failed","retryable":false',
    '"status":"started","effect":"once","effect":"idempotent","input":"none","key":"","startedAt":1',
    // Messages as others write them.
    '{"role":"system","content":"","tool_calls":[{"id":"call_","type":"function","function":{"name":"","arguments":"{\\"',
    '"toolCalls":[{"id":"call_","name":"","arguments":{"toolCallId":"call_","content":{"status":"","description":"",',
    '"title":"","url":"https://","email":"","created_at":"202","amount":,"quantity":1,"items":[{"price":',
    '","usage":{"inputTokens":,"outputTokens":,"totalTokens":',
    '[{"ops":[["push",["messages"],[{"role":"user","content":""},{"role":"assistant","content":""}]],["set",["turn"],',
    // The first and the last step of an agent.
    '["set",["state","summary"],null],["set",["state","resumes"],{"count":0,"tokensSaved":0}],',
    '["set",["state","toolVersions"],{}],["set",["state","loop"],{"next":"model","calls":[],"measured":null,',
    '"overflowAt":-1,"failedAt":-1,"spent":null}]"ended":{"reason":"finished","message":',
    '"The model had nothing more to do."},"loop":{"next":"end","calls":[],',
    // An input, the beginning and the end of a run.
    '[{"ops":[["set",["retention"],true],["set",["claims"],1],["set",["openSince"],1],["push",["inputs"],[{"id":"",',
    '"hash":"","at":1,"key":"","value":{"messages":[{"id":"msg_","v":1,"role":"user","parts":[{"type":"text","text":""}],',
    '"at":1}],"turn":0,"ended":null},"stateVersion":1,"unsaid":true}]]],"index":{"status":"active","wakeAt":0,',
    '"expiresAt":null,"metadata":{"holdfast.program":"","holdfast.version":"1.0.0"}}}]',
    '[{"ops":[["set",["run"],{"id":"","number":1,"status":"running","kind":"flow","kind":"graph","program":"",',
    '"version":"1.0.0","stateVersion":1,"inputHash":"","startedAt":1,"incarnation":"","count":0,"takes":1}],',
    '["copy",["run","input"],["inputs",0,"value"]],["concat",["state","messages"],["inputs",0,"value","messages"]],',
    '["set",["state","turn"],0],["copy",["state","runUsage"],["inputs",0,"value","runUsage"]],',
    '["set",["state","ended"],null],["splice",["inputs"],0,1,[]],["set",["tasks"],[{"node":"model","id":"0:model"}]],',
    '["set",["run","status"],"completed"],["delete",["openSince"]],["delete",["tasks"]],["set",["run","output"],',
    '["delete",["run","input"]]],"index":{"status":"completed","wakeAt":null,"expiresAt":1',
    '"store":[["put","{holdfast=usage}threads",":main",{"thread":"","branch":"main","program":"","tally":',
    `${TALLY}},null]],"data":{"events":[{"type":"run","run":"","status":"started"},`,
    ',"attempt":1,"ms":1},{"type":"usage","step":"0:model","usage":{"basis":"provider","cost":null,',
    '"model":{"provider":"","id":""},"attempts":1}},{"type":"run","run":"","status":"completed"}]}}]',
    // A step of a model, of a tool, of a flow.
    '[{"ops":[["set",["steps","2:model"],{"status":"done","result":{"messages":[{"id":"msg_","v":1,"role":"assistant",',
    '"parts":[{"type":"reasoning","text":"","type":"tool-call","callId":"call_","name":"","input":{"":""}}],"at":1,',
    '"usage":{"basis":"provider"},"model":{"provider":"","id":""},"finish":{"reason":"stop"},',
    '"finish":{"reason":"tool-calls"}}],"turn":1,"usage":,"runUsage":,"loop":{"run":"","claim":"main:1","next":"tools",',
    '"calls":[{"callId":"call_","name":"","input":{"":""},"message":"msg_"}],"spent":{"id":":main","branch":"main",',
    '"tally":{},"measured":null}}}],["set",["state","turn"],1],["copy",["state","usage"],["steps","2:model","result",',
    '"usage"]],["copy",["state","runUsage"],["steps","2:model","result","runUsage"]],["copy",["state","ended"],["steps",',
    '"2:model","result","ended"]],["set",["state","loop","run"],""],["set",["state","loop","claim"],"main:1"],',
    '["set",["state","loop","next"],"tools"],["copy",["state","loop","calls"],["steps","2:model","result","loop",',
    '"calls"]],["copy",["state","loop","spent"],["steps","2:model","result","loop","spent"]],["set",["tasks"],',
    '[{"node":"tool ","input":{"callId":"call_","name":"","input":{},"message":"msg_"},"id":"1:tool "}]],',
    '["delete",["steps"]],["set",["run","count"],1],["set",["claims"],0]],"index":{"status":"waiting_tool"},',
    '[{"ops":[["set",["steps","1:tool "],{"status":"done","result":{"messages":[{"id":"msg_","v":1,"role":"tool",',
    '"parts":[{"type":"tool-result","callId":"call_","name":"","output":{"type":"text","value":"",',
    '"output":{"type":"json","value":{"":""}}}],"at":1}]}}],["concat",["state","messages"],["steps","1:tool ",',
    '"result","messages"]],["set",["tasks"],[{"node":"model","id":"2:model"}]],["delete",["steps"]],',
    '["set",["run","count"],2]],"index":{"status":"active"},',
    '[{"ops":[["set",["steps",""],{"status":"done","after":"","result":{}}],["set",["claims"],0]],"data":{"events":',
    '[{"type":"step","step":"","status":"completed","attempt":1,"ms":0}]}}]',
  ].join(''),
)

/** Of `d2`. */
export const DICTIONARY_2: Uint8Array = Buffer.from(
  [
    ' the and of to in is that you for it with your are was this have can not will be on as from or we has been would',
    ' there which please any more about when our ',
    // Waits, pauses, answers, failures, effects.
    '"status":"failed","error":{"name":"StepFailedError","message":"Step \\"","code":"step-failed","retryable":false',
    '{"status":"waiting","until":1["set",["run","waiting"],[{"kind":"sleep","step":"","kind":"signal"',
    '[{"ops":[["set",["pauses","p-"],{"id":"p-","path":"1:tool  approval","kind":"question","kind":"approval","question":{"tool":"",',
    '"callId":"call_","input":{}},"askedAt":1,"exact":true,"schema":{"type":"object","properties":{"approved":{"type":"boolean"},',
    '"input":{"type":"object","properties":{"":{"type":"string"}},"required":[""]},"reason":{"type":"string"},"result":{}},',
    '"required":["approved"],"additionalProperties":false}}],["set",["run","waiting"],[]],["delete",["openSince"]]],',
    '"index":{"status":"waiting_human","wakeAt":null},"data":{"events":[{"type":"pause","pause":"p-","kind":"approval",',
    '"question":{"tool":"","callId":"call_","input":{}}},{"type":"run","run":"","status":"paused"}]}}]',
    '[{"ops":[["set",["pauses","p-","answer"],{"value":{"approved":true},"at":1,"by":""}]],"index":{"wakeAt":0,"status":"active"},',
    '"data":{"events":[{"type":"answer","pause":"p-","by":""}]}}]',
    '[{"ops":[["set",["pauses","p-","used"],true],["set",["steps",""],{"status":"started","effect":"once","effect":"idempotent",',
    '"input":"none","key":"","startedAt":1}]],"data":{"events":[{"type":"step","step":"1:tool ","status":"started"}]}}]',
    // Messages as others write them.
    '{"role":"system","content":"","tool_calls":[{"id":"call_","type":"function","function":{"name":"","arguments":"{\\"',
    '"toolCalls":[{"id":"call_","name":"","arguments":{"toolCallId":"call_","content":{"status":"","description":"",',
    '"title":"","url":"https://","email":"","created_at":"202","amount":,"quantity":1,"items":[{"price":',
    '","usage":{"inputTokens":,"outputTokens":,"totalTokens":',
    '[{"ops":[["push",["messages"],[{"role":"user","content":""},{"role":"assistant","content":""}]],["set",["turn"],',
    // The beginning and the steps of a flow.
    '"status":"running","kind":"flow","program":"","copy",["run","input"],["inputs",0,"value"]],["splice",["inputs"],0,1,[]],',
    '["set",["run","output"],["delete",["steps"]],["delete",["run","input"]]],',
    '[{"ops":[["set",["steps",""],{"status":"done","effect":"once","after":"","result":{}}],["set",["claims"],0]],"data":{"events":',
    '[{"type":"step","step":"","status":"completed","attempt":1,"ms":0}]}}]',
    // Several tools at once.
    '[{"ops":[["set",["steps","1:tool "],{"status":"done","result":{"messages":[{"id":"msg_","v":1,"role":"tool","parts":[',
    '["concat",["state","messages"],["steps","1:tool ","result","messages"]],["set",["tasks"],[{"node":"model","id":"2:model"}]],',
    '["delete",["steps"]],["set",["run","count"],2],["delete",["pauses","p-"]],["push",["closed"],[{"id":"p-","reason":"answered",',
    // The first step of an agent.
    '["set",["state","messages"],[]],["set",["state","memory"],{}],["set",["state","turn"],0],["set",["state","usage"],{"input":0,',
    '["set",["state","ended"],null],["set",["state","summary"],null],["set",["state","resumes"],{"count":0,"tokensSaved":0}],',
    '["set",["state","toolVersions"],{}],["set",["state","loop"],{"next":"model","calls":[],"run":"","claim":"","measured":null,',
    '"overflowAt":-1,"failedAt":-1,"spent":null}],["set",["state","loop","spent"],{"id":"","branch":"main"}],',
    '["set",["state","loop","measured"],{"tokens":,"count":,"from":0,"ratio":}],',
    // A claim, an input.
    '"metadata":{"holdfast.program":"","holdfast.version":"1.0.0"}},"data":{"owner":"',
    '"data":{"events":[{"type":"run","run":"","status":"resumed"}],"owner":"',
    '[{"ops":[["set",["retention"],true],["set",["claims"],1],["set",["openSince"],1],["push",["inputs"],[{"id":"","hash":"",',
    '"at":1,"key":"","value":{"messages":[{"id":"msg_","v":1,"role":"user","parts":[{"type":"text","text":""}],"at":1}]},',
    '"stateVersion":1,"unsaid":true}]]],"index":{"status":"active","wakeAt":0,"expiresAt":null},"data":{"owner":""}}]',
    // A tool's step.
    '[{"ops":[["set",["run","count"],2],["push",["state","messages"],[{"id":"msg_","v":1,"role":"tool","parts":[{',
    '"type":"tool-result","callId":"call_","name":"","output":{"type":"text","value":"","output":{"type":"json","value":{"":""}}}],',
    '"at":1}]],["set",["tasks"],[{"node":"model","id":"2:model"}]]],"index":{"status":"active"},"data":{"events":[',
    '{"type":"step","step":"1:tool ","ms":0}]}}]',
    // A model's step with which a run begins.
    '[{"ops":[["set",["run"],{"id":"","number":1,"status":"running","kind":"graph","program":"","version":"1.0.0",',
    '"stateVersion":1,"startedAt":1,"incarnation":"","count":0,"takes":1,"key":""}],',
    '["copy",["run","inputHash"],["inputs",0,"hash"]],["set",["state","turn"],0],["set",["state","runUsage"],{"input":0,"cachedInput":0,',
    '"cacheWrite":0,"output":0,"reasoning":0,"total":0,"basis":"provider","calls":0,"cost":0,"unpriced":0}],',
    '["set",["state","ended"],null],["concat",["state","messages"],["inputs",0,"value","messages"]],["splice",["inputs"],0,1,[]],',
    '["set",["tasks"],[{"node":"model","id":"0:model"}]],["set",["run","count"],1],["push",["state","messages"],[{"id":"msg_",',
    '"v":1,"role":"assistant","parts":[{"type":"reasoning","text":"","type":"text","text":""},{"type":"tool-call","callId":"call_",',
    '"name":"","input":{"":""}}],"at":1,"finish":{"reason":"tool-calls","raw":"tool_calls"}}]],["set",["state","turn"],1],',
    '"calls":1,"cost":0,"unpriced":1}],["set",["state","loop","run"],""],["set",["state","loop","claim"],"main:1"],',
    '["set",["state","loop","next"],"tools"],["set",["state","loop","calls"],[{"callId":"call_","name":"","input":{"":""},',
    '"message":"msg_"}]],["set",["tasks"],[{"node":"tool ","input":{"callId":"call_","name":"","input":{"":""},"message":"msg_"},',
    '"id":"1:tool "}]],["set",["claims"],0]],"index":{"status":"waiting_tool"},"store":[["put","{holdfast=usage}threads","',
    '"cost":0,"unpriced":1}},null]],"data":{"events":[{"type":"run","run":"","status":"started"},{"type":"step","step":"0:model",',
    '"ms":0},{"type":"usage","step":"0:model","usage":{"cost":null,"attempts":1}}]}}]',
    // One with which it ends.
    '[{"ops":[["set",["run","count"],3],["push",["state","messages"],[{"id":"msg_","v":1,"role":"assistant","parts":[{"type":"text",',
    '"text":""}],"at":1,"usage":{"input":,"cachedInput":0,"cacheWrite":0,"output":,"reasoning":0,"total":,"basis":"provider"},',
    '"model":{"provider":"openai","id":"","actual":"","responseId":""},"finish":{"reason":"stop","raw":"stop"}}]],["set",["state","turn"],2],["set",["state","usage"],{"input":,',
    '"basis":"provider","calls":,"cost":0,"unpriced":}],["set",["state","runUsage"],{"input":,"calls":2,"cost":0,"unpriced":2}],',
    '["set",["state","ended"],{"reason":"finished","message":"The model had nothing more to do."}],',
    '["set",["state","loop","next"],"end"],["set",["state","loop","calls"],[]],["set",["tasks"],[]],["set",["run","status"],',
    '"completed"],["delete",["openSince"]],["delete",["tasks"]],["set",["keys",""]],"index":{"status":"completed","wakeAt":null,"expiresAt":1},',
    '"store":[["put","{holdfast=usage}threads",":main",{"thread":"","branch":"main","program":"","tally":{"input":,"cost":0,',
    '"unpriced":}},null]],"data":{"events":[{"type":"step","step":"2:model","ms":0},{"type":"usage","step":"2:model","usage":{',
    '"cost":null,"cost":0.000,"attempts":1}},{"type":"run","run":"","status":"completed"}]}}]',
  ].join(''),
)
