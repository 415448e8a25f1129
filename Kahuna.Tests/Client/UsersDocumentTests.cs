using Google.Protobuf;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.Connection;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Hosting;
using Kahuna.Wire.Protos;
using RoleGrant = Kahuna.Client.Administration.RoleGrant;

namespace Kahuna.Tests.Client;

/// <summary>The examples of docs/client.md with users; <see cref="ClientDocumentTests"/> compares them.</summary>
public sealed class UsersDocumentTests
{
    [Fact]
    public async Task The_example_of_credentials_runs()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1).WaitAsync(Wait.Longest);
        using TemporaryDirectory directory = new();
        string secretFile = Path.Combine(directory.Path, "kahuna");
        await File.WriteAllTextAsync(secretFile, "correct horse\n");
        await RunUsersAsync(cluster.Endpoints, secretFile).WaitAsync(Wait.Longest);
    }

    [Fact]
    public async Task The_example_of_the_administration_runs()
    {
        FakeCluster cluster = new();
        List<string> called = [];
        cluster[1].OnCall = (call, _) =>
        {
            called.Add(call.Path.Split('/')[^1]);
            IMessage answer = called[^1] switch
            {
                "PutRole" => PutRoleRequest.Parser.ParseFrom(call.Request).Role,
                "CreateUser" => CreateUserRequest.Parser.ParseFrom(call.Request).User,
                "CreateToken" => new CreateTokenResponse { Token = new Token { Id = "a1" }, Text = "kahuna_a1.x" },
                _ => new ListTokensResponse { Tokens = { new Token { Id = "a1", User = "shop" } } },
            };
            return new CallAnswer(new StreamStatus(0, ""), OperationOutcome.Happened, answer.ToByteArray());
        };
        await using KahunaClient client = cluster.Client();
        using TemporaryDirectory directory = new();
        string tokenFile = Path.Combine(directory.Path, "token");
        await RunAdministrationAsync(client, tokenFile).WaitAsync(Wait.Longest);
        Assert.Equal(["PutRole", "CreateUser", "CreateToken", "ListTokens"], called);
        Assert.Equal("kahuna_a1.x", await File.ReadAllTextAsync(tokenFile));
    }

    private static async Task RunUsersAsync(string endpoint, string secretFile)
    {
        #region users
        await using KahunaClient shop = KahunaClient.Connect(endpoint, options =>
            options.Credentials = KahunaCredentials.PasswordFile("shop", secretFile));
        try
        {
            await shop.KeyValues.SetAsync("orders/17", "paid");
        }
        catch (KahunaException denied) when (denied.Code == KahunaErrorCode.PermissionDenied)
        {
            Console.WriteLine(denied.Message);
        }
        #endregion
    }

    private static async Task RunAdministrationAsync(KahunaClient client, string tokenFile)
    {
        #region administration
        AdminClient admin = client.Admin;
        await admin.PutRoleAsync(new KahunaRole("orders",
        [
            RoleGrant.OnPrefix("orders/", Permissions.Read | Permissions.Write | Permissions.Watch),
            RoleGrant.OnKey("orders-lock", Permissions.Lock),
        ]));
        await admin.CreateUserAsync(new KahunaUser { Name = "shop", Roles = ["orders"] });
        NewToken token = await admin.CreateTokenAsync("shop", new TokenOptions { Lifetime = TimeSpan.FromDays(90) });
        await File.WriteAllTextAsync(tokenFile, token.Secret);
        await foreach (AccessToken other in admin.ListTokensAsync("shop"))
        {
            Console.WriteLine($"{other.Id} until {other.ExpiresAt}");
        }
        #endregion
    }
}
