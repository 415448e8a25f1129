using System.Net;
using System.Text;
using System.Text.Json.Nodes;
using Kahuna.Tests.Api.Grpc;

namespace Kahuna.Tests.Api.Json;

/// <summary>
/// Calls of JSON over HTTP at real nodes: what is carried out, what is refused, and how that is said.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed class JsonCallTests(ThreeNodes nodes)
{
    private const string Key = "/v1/kv/json/a";
    private const string Persistent = "\"durability\":\"DURABILITY_PERSISTENT\"";

    [Theory]
    [InlineData("2.0", true)]
    [InlineData("2.0", false)]
    [InlineData("1.1", true)]
    public async Task A_value_is_written_read_and_deleted(string version, bool throughLeader)
    {
        string path = $"/v1/kv/json/round-{version}-{throughLeader}";
        JsonObject set = await GoodAsync(
            "PUT", path, "{" + Persistent + ",\"value\":{\"data\":\"AP8=\"}}", version, throughLeader);
        Assert.Equal("""{"set":true,"revision":"1","previousRevision":"0"}""", set.ToJsonString());
        JsonObject got = await GoodAsync(
            "GET", path + "?durability=DURABILITY_PERSISTENT", null, version, throughLeader);
        Assert.Equal("""{"found":true,"value":{"data":"AP8="},"revision":"1"}""", got.ToJsonString());
        JsonObject gone = await GoodAsync(
            "DELETE", path + "?durability=DURABILITY_PERSISTENT", null, version, throughLeader);
        Assert.True((bool)gone["deleted"]!);
    }

    [Theory]
    [InlineData("json/ä €", "/v1/kv/json/%C3%A4%20%E2%82%AC")]
    [InlineData("json/100%", "/v1/kv/json/100%25")]
    [InlineData("json//b", "/v1/kv/json//b")]
    [InlineData("json/%2F", "/v1/kv?key=json%2F%252F")]
    [InlineData("json/../c", "/v1/kv?key=json/../c")]
    public async Task A_key_of_any_text_has_an_address(string key, string path)
    {
        JsonObject body = new()
        {
            ["key"] = key,
            ["durability"] = "DURABILITY_PERSISTENT",
            ["value"] = new JsonObject { ["data"] = "" },
        };
        await GoodAsync("PUT", "/v1/kv", body.ToJsonString());
        string sign = path.Contains('?', StringComparison.Ordinal) ? "&" : "?";
        Assert.True((bool)(await GoodAsync("GET", $"{path}{sign}durability=DURABILITY_PERSISTENT", null))["found"]!);
    }

    [Theory]
    [InlineData("GET", Key, null, "durability is not set")]
    [InlineData("GET", Key + "?durability=persistent", null, "'persistent' is not a value of the field 'durability'; known are DURABILITY_PERSISTENT, DURABILITY_EPHEMERAL.")]
    [InlineData("GET", Key + "?durability=DURABILITY_PERSISTENT&atRevision=x", null, "'x' is not a value of the field 'atRevision'")]
    [InlineData("GET", Key + "?durability=DURABILITY_PERSISTENT&nothing=1", null, "This call has no query field 'nothing'")]
    [InlineData("GET", Key + "?durability=DURABILITY_PERSISTENT&key.deeper=1", null, "This call has no query field 'key.deeper'")]
    [InlineData("DELETE", Key + "?conditions=1", null, "This call has no query field 'conditions'")]
    [InlineData("GET", "/v1/kv/json%2Fa?durability=DURABILITY_PERSISTENT", null, "The path has an escaped slash")]
    [InlineData("GET", "/v1/kv/json/%FF?durability=DURABILITY_PERSISTENT", null, "The path has an escaped slash, a dot segment or invalid UTF-8")]
    [InlineData("PUT", Key, "", "The body is not a valid SetKeyValueRequest in JSON")]
    [InlineData("PUT", Key, "[]", "The body is not a valid SetKeyValueRequest in JSON")]
    [InlineData("PUT", Key, "{\"durab", "The body is not a valid SetKeyValueRequest in JSON")]
    [InlineData("PUT", Key, "{\"ttlMS\":\"5\"}", "Unknown field: ttlMS")]
    [InlineData("PUT", Key, "{\"ttlMs\":\"5x\"}", "The body is not a valid SetKeyValueRequest in JSON")]
    [InlineData("PUT", Key, "{\"value\":{\"data\":\"?\"}}", "The body is not a valid SetKeyValueRequest in JSON")]
    [InlineData("PUT", Key + "?ttlMs=5", "{}", "'ttlMs' is in the query; PUT takes its fields from the body.")]
    public async Task What_is_not_understood_is_refused_and_did_not_happen(
        string method, string path, string? body, string message)
    {
        JsonObject error = await BadAsync(HttpStatusCode.BadRequest, method, path, body);
        Assert.Contains(message, (string?)error["message"], StringComparison.Ordinal);
        Assert.Equal("INVALID_ARGUMENT", (string?)error["details"]![0]!["reason"]);
        Assert.Equal("did-not-happen", (string?)error["details"]![0]!["metadata"]!["outcome"]);
    }

    [Theory]
    [InlineData("PUT", "text/plain")]
    [InlineData("PUT", "application/json; charset=utf-16")]
    [InlineData("PUT", "application/x-www-form-urlencoded")]
    [InlineData("GET", "application/json; charset=no-such-set")]
    public async Task Another_content_type_is_refused(string method, string type)
    {
        using HttpRequestMessage request = Request(method, Key, "{}", "2.0");
        request.Content!.Headers.Remove("Content-Type");
        request.Content.Headers.TryAddWithoutValidation("Content-Type", type);
        using HttpResponseMessage response = await SendAsync(request);
        Assert.Equal(HttpStatusCode.BadRequest, response.StatusCode);
        Assert.Contains(
            "it must be application/json", await response.Content.ReadAsStringAsync(), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("POST", "/v1/next/none", "{}", HttpStatusCode.NotFound, "NOT_FOUND")]
    [InlineData("POST", "/v1/increment/json/word", "{" + Persistent + ",\"amount\":\"1\"}", HttpStatusCode.BadRequest, "FAILED_PRECONDITION")]
    public async Task Errors_of_services_have_their_status_and_outcome(
        string method, string path, string body, HttpStatusCode status, string reason)
    {
        await GoodAsync("PUT", "/v1/kv/json/word", "{" + Persistent + ",\"value\":{\"data\":\"d29yZA==\"}}");
        JsonObject error = await BadAsync(status, method, path, body);
        Assert.Equal(reason, (string?)error["details"]![0]!["reason"]);
        Assert.Equal("did-not-happen", (string?)error["details"]![0]!["metadata"]!["outcome"]);
    }

    [Fact]
    public async Task The_openapi_document_names_every_path_and_its_schemas()
    {
        JsonObject document = await GoodAsync("GET", "/openapi.json", null);
        JsonObject paths = document["paths"]!.AsObject();
        Assert.Equal(
            HttpRules.All().Select(static rule => rule.Path.Replace("=**", "", StringComparison.Ordinal)).ToHashSet(),
            paths.Select(static path => path.Key).ToHashSet());
        JsonObject schemas = document["components"]!["schemas"]!.AsObject();
        foreach (string name in References(document))
        {
            Assert.True(schemas.ContainsKey(name), name);
        }

        string[] ids =
        [
            .. paths.SelectMany(static path => path.Value!.AsObject())
                .Select(static operation => (string)operation.Value!["operationId"]!),
        ];
        Assert.Equal(ids.Length, ids.Distinct().Count());
        Assert.Contains(
            "conditions.ifRevision",
            paths["/v1/kv/{key}"]!["delete"]!["parameters"]!.ToJsonString(),
            StringComparison.Ordinal);
    }

    private static IEnumerable<string> References(JsonNode? node) => node switch
    {
        JsonObject inner =>
            inner.SelectMany(static member =>
                member.Key == "$ref"
                    ? [((string)member.Value!)["#/components/schemas/".Length..]]
                    : References(member.Value)),
        JsonArray many => many.SelectMany(References),
        _ => [],
    };

    private async Task<JsonObject> GoodAsync(
        string method, string path, string? body, string version = "2.0", bool throughLeader = true)
    {
        using HttpRequestMessage request = Request(method, path, body, version, throughLeader);
        using HttpResponseMessage response = await SendAsync(request);
        string text = await response.Content.ReadAsStringAsync();
        Assert.True(response.StatusCode == HttpStatusCode.OK, text);
        return JsonNode.Parse(text)!.AsObject();
    }

    private async Task<JsonObject> BadAsync(HttpStatusCode status, string method, string path, string? body)
    {
        using HttpRequestMessage request = Request(method, path, body, "2.0");
        using HttpResponseMessage response = await SendAsync(request);
        string text = await response.Content.ReadAsStringAsync();
        Assert.True(response.StatusCode == status, $"{response.StatusCode} {text}");
        JsonObject error = JsonNode.Parse(text)!.AsObject();
        Assert.Equal(
            (string?)error["details"]![0]!["metadata"]!["outcome"],
            response.Headers.GetValues("kahuna-outcome").Single());
        return error;
    }

    private HttpRequestMessage Request(
        string method, string path, string? body, string version, bool throughLeader = true)
    {
        Uri node =
            nodes.Cluster.Nodes[throughLeader ? nodes.LeaderIndex : (nodes.LeaderIndex + 1) % 3].Options.Advertise;
        UriCreationOptions asWritten = new() { DangerousDisablePathAndQueryCanonicalization = true };
        return new HttpRequestMessage(
            new HttpMethod(method), new Uri(node.GetLeftPart(UriPartial.Authority) + path, asWritten))
        {
            Version = new Version(version),
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = body is null ? null : new StringContent(body, Encoding.UTF8, "application/json"),
        };
    }

    private static Task<HttpResponseMessage> SendAsync(HttpRequestMessage request) =>
        RawHttp.AnyServer().SendAsync(request, CancellationToken.None).WaitAsync(LastNet.Span);
}
